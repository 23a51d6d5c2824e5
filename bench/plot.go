package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/bench/stats"
)

type contestantColor struct {
	name string
	fill color.Color
}

// drawn are the contestants of the plots, each with one colour everywhere.
var drawn = []contestantColor{
	{"fieldstone", color.RGBA{0x1b, 0x6c, 0xa8, 0xff}},
	{"hdf5", color.RGBA{0xe0, 0x8e, 0x2b, 0xff}},
	{"pnetcdf", color.RGBA{0x5a, 0x9e, 0x4b, 0xff}},
	{"rows", color.RGBA{0x8f, 0x6b, 0xb1, 0xff}},
	{"common", color.RGBA{0xb5, 0x3a, 0x3a, 0xff}},
}

// plots draws what there is to draw into the folder: rates.png, the rates of all savers
// relative to the floor, and growth.png.
func plots(folder string, s *plan.Suite, r *results) error {
	if err := plotRates(filepath.Join(folder, "rates.png"), r); err != nil {
		return err
	}
	return plotGrowth(filepath.Join(folder, "growth.png"), s, r)
}

// shortName is a case without what all have in common.
func shortName(c plan.Case) string {
	place := string(c.Place)
	if c.Sync {
		place = "fsync"
	}
	n := fmt.Sprintf("%d³", c.Cells[0])
	if c.Cells[0] != c.Cells[2] {
		n = fmt.Sprintf("%d²x%d", c.Cells[0], c.Cells[2])
	}
	cut := "slabs"
	if c.Processes[0] > 1 {
		cut = "x-split"
	}
	return fmt.Sprintf("%d x %s\n%d ranks\n%s\n%s", c.Fields, n, c.Ranks(), cut, place)
}

// plotRates shows the cases in which somebody else than the floor and Fieldstone took
// part, with the best component of each.
func plotRates(path string, r *results) error {
	var cases []plan.Case
	for _, c := range r.cases {
		if c.Kind == plan.Save && c.Halo == 2 && len(c.Contestants) > 4 && len(r.seconds(plan.DefaultComponent, c.Name, "floor")) > 0 {
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text = "Saving: rate over that of the shared-file floor (best component of MPI-IO)"
	p.Y.Label.Text = "rate / floor"
	p.Legend.Top = true
	width := vg.Points(60 / float64(len(drawn)))
	for i, d := range drawn {
		values := make(plotter.Values, len(cases))
		for k, c := range cases {
			for _, component := range r.components {
				if ratio, _, ok := r.ratio(component, c.Name, d.name, "floor"); ok {
					values[k] = max(values[k], ratio)
				}
			}
		}
		if slices.Max(values) == 0 {
			continue
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color = d.fill
		bars.LineStyle.Width = 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(drawn)-1)/2)
		p.Add(bars)
		p.Legend.Add(d.name, bars)
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(one)
	p.Legend.Add("floor", one)
	p.X.Min, p.X.Max = -0.5, float64(len(cases))-0.5
	p.Y.Min = 0
	var ticks []plot.Tick
	for k, c := range cases {
		ticks = append(ticks, plot.Tick{Value: float64(k), Label: shortName(c)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	return p.Save(vg.Points(max(560, 90*float64(len(cases))+150)), vg.Points(420), path)
}

// plotGrowth shows the series of cells, time against cells, both logarithmic.
func plotGrowth(path string, s *plan.Suite, r *results) error {
	i := slices.IndexFunc(s.Growth, func(g plan.Growth) bool { return strings.HasPrefix(g.Name, "cells") })
	if i < 0 {
		return nil
	}
	g := s.Growth[i]
	p := plot.New()
	p.Title.Text = "Time of a save with " + g.Name
	p.X.Label.Text, p.Y.Label.Text = "cells", "ms"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: 3}, plot.LogTicks{Prec: 3}
	p.Legend.Top, p.Legend.Left = true, true
	some := false
	for _, d := range append(slices.Clone(drawn), contestantColor{"floor", color.Black}) {
		var points plotter.XYs
		for k, c := range g.Cases {
			if seconds := r.seconds(plan.DefaultComponent, c, d.name); len(seconds) > 0 {
				points = append(points, plotter.XY{X: g.X[k], Y: 1e3 * stats.Median(seconds)})
			}
		}
		if len(points) < 2 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, dots.Color = d.fill, d.fill
		p.Add(line, dots)
		p.Legend.Add(d.name, line, dots)
		some = true
	}
	if !some {
		return nil
	}
	return p.Save(vg.Points(560), vg.Points(420), path)
}
