package main

import (
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// describe says what a run computes, in the sections of a run file's settings: two
// runs with the same records have the same bits. What has no influence on them is not
// in it, such as the ranks.
func describe(set settings) (setup runfile.Setup, err error) {
	m := set.Model
	build := func(to *record.Record, fill func(b *record.Builder)) {
		if err == nil {
			b := record.NewBuilder()
			fill(b)
			*to, err = b.Build()
		}
	}
	build(&setup.System, func(b *record.Builder) {
		b.Section("phi", func(b *record.Builder) {
			b.Text("type", "phase field").Float("relaxation_time", m.Tau)
			b.Section("gradient", func(b *record.Builder) {
				b.Float("thickness", m.Epsilon).Float("anisotropy", m.Delta)
				b.Int("fold", int64(m.Fold)).Float("direction", m.Theta0)
			})
			b.Section("reaction", func(b *record.Builder) {
				b.Text("type", "double well").Float("alpha", m.Alpha).Float("gamma", m.Gamma).Float("equilibrium", m.Te)
			})
			b.Section("noise", func(b *record.Builder) {
				b.Float("amplitude", m.Noise).Uint("seed", m.Seed).Text("generator", "splitmix64 of seed, step and cell")
			})
		})
		b.Section("T", func(b *record.Builder) {
			b.Text("type", "heat").Float("diffusivity", 1).Float("latent_heat", m.Latent)
		})
		b.Section("boundaries", func(b *record.Builder) {
			for axis, name := range []string{"x", "y"} {
				b.Text(name, map[bool]string{true: "periodic", false: "wall"}[set.Periodic[axis]])
			}
		})
		b.Section("initial", func(b *record.Builder) {
			b.Text("type", "disc of crystal in melt").Float("radius", m.Radius)
		})
	})
	build(&setup.Solver, func(b *record.Builder) { b.Text("nonlinear", "none").Text("linear", "none") })
	build(&setup.Stepper, func(b *record.Builder) {
		b.Text("type", "explicit euler").Float("step_length", m.Step).Text("error_control", "none")
	})
	build(&setup.Run, func(b *record.Builder) {
		b.Text("program", "dendrite").Text("model", "R. Kobayashi, Physica D 63 (1993) 410-423")
	})
	setup.Deterministic = true
	return setup, err
}

// times are the times of the states that a run saves: they begin at 0 and end at its
// end.
func times(set settings, at func(increment int64) float64) []float64 {
	var list []float64
	for n := int64(0); n < set.Steps; n += set.Run.SaveEvery {
		list = append(list, at(n))
	}
	return append(list, at(set.Steps))
}
