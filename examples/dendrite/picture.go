package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// writePicture draws a bundle as a PNG file, one pixel for each cell, y upwards:
// the crystal like ice, and around it the heat that it gives off. It reads the
// bundle row by row and needs no other rank.
func writePicture(bundle, file string) (err error) {
	b, err := publish.OpenBundle(bundle)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	size := b.Metadata().Domain.Size
	img := image.NewNRGBA(image.Rect(0, 0, size[0], size[1]))
	phi, temp := make([]float64, size[0]), make([]float64, size[0])
	for j := range size[1] {
		row := grid.Box{Low: [3]int{0, j, 0}, Size: [3]int{size[0], 1, 1}}
		if err := errors.Join(b.ReadBox("phi", row, phi), b.ReadBox("T", row, temp)); err != nil {
			return fmt.Errorf("picture: %w", err)
		}
		for i := range size[0] {
			img.SetNRGBA(i, size[1]-1-j, paint(phi[i], temp[i]))
		}
	}

	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	if err := errors.Join(png.Encode(f, img), f.Close()); err != nil {
		return fmt.Errorf("picture %s: %w", file, err)
	}
	return nil
}

// The colours of the melt from T = 0 to T = 1, and of the crystal.
var (
	melt = [][3]float64{{7, 6, 22}, {46, 16, 74}, {120, 28, 92}, {190, 58, 66}, {240, 130, 50}}
	ice  = [][3]float64{{120, 175, 225}, {165, 208, 240}, {205, 230, 248}, {232, 244, 252}, {250, 252, 255}}
)

// paint mixes the colours of melt and crystal by phi.
func paint(phi, temp float64) color.NRGBA {
	m, c := shade(melt, temp), shade(ice, temp)
	phi = min(max(phi, 0), 1)
	var rgb [3]uint8
	for i := range rgb {
		rgb[i] = uint8(m[i]*(1-phi) + c[i]*phi + 0.5)
	}
	return color.NRGBA{rgb[0], rgb[1], rgb[2], 255}
}

// shade interpolates in a scale of colours that spans 0 to 1.
func shade(scale [][3]float64, v float64) (rgb [3]float64) {
	v = min(max(v, 0), 1) * float64(len(scale)-1)
	k := min(int(v), len(scale)-2)
	for i := range rgb {
		rgb[i] = scale[k][i] + (v-float64(k))*(scale[k+1][i]-scale[k][i])
	}
	return rgb
}
