package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda"
	_ "github.com/fieldstone-io/fieldstone/device/emulated"
	_ "github.com/fieldstone-io/fieldstone/device/hip"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "device:", err)
		os.Exit(1)
	}
}

// settings are those of the command line.
type settings struct {
	device  string
	size    int   // cells of the fields along each axis
	big     int64 // cells that the first of a box lies behind
	fields  int   // of a bundle
	repeats int
	batch   time.Duration // that launches are timed together
	folder  string

	opening time.Duration // what it took to open the device
}

// A part is something to measure, in order of worth.
type part struct {
	name string
	run  func(context.Context, settings, device.Space, *report) error
}

var parts = []part{
	{"big", big},
	{"kernels", kernels},
	{"ring", rings},
	{"capture", captures},
	{"costs", costs},
	{"blocked", blocked},
	{"readings", readings},
	{"bundles", bundles},
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ",")
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var s settings
	flags := flag.NewFlagSet("device", flag.ContinueOnError)
	flags.StringVar(&s.device, "device", "cuda:0", "the device")
	flags.IntVar(&s.size, "size", 320, "cells of each field along each axis")
	flags.Int64Var(&s.big, "big", 1<<31, "index beyond which the first cell of a box lies")
	flags.IntVar(&s.fields, "fields", 2, "fields of a bundle")
	flags.IntVar(&s.repeats, "repeats", 5, "repetitions of each measure")
	flags.DurationVar(&s.batch, "batch", 10*time.Millisecond, "how long launches are queued, at least, that are timed together")
	flags.StringVar(&s.folder, "folder", "", "where bundles are written (default: shared memory where it has the space, or the temporary folder)")
	names := flags.String("parts", partNames(), "what is measured")
	also := flags.String("also", "", "a file to which is appended what is printed")
	verify := flags.String("verify", "", "only verify the bundles in a folder")
	list := flags.Bool("list", false, "only say what the device is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.size < 4 || s.big < 1<<10 || s.fields < 1 || s.repeats < 1 || s.batch < 0 {
		return errors.New("size must be at least 4, big at least 1024, fields and repeats at least 1, batch at least 0")
	}
	wanted := strings.Split(*names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q: there are %s", name, partNames())
		}
	}
	if *also != "" {
		f, err := os.OpenFile(*also, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = io.MultiWriter(f, out) // the file first: it is what stays
	}
	if *verify != "" {
		return verifyAll(ctx, *verify)
	}
	start := time.Now()
	space, err := device.Open(s.device)
	if err != nil {
		return err
	}
	s.opening = time.Since(start)
	defer func() { err = errors.Join(err, space.Close()) }()
	if *list {
		return describe(space, out)
	}
	return measure(ctx, s, space, out, wanted...)
}

func describe(space device.Space, out io.Writer) error {
	memory, err := space.MemoryInfo()
	if err != nil {
		return err
	}
	p := space.Properties()
	_, err = fmt.Fprintf(out, "%s: %s, %s, %s, %d MiB free of %d; %d cores\n", space.Name(), p.Model, p.Arch, p.Driver,
		memory.Free>>20, memory.Total>>20, runtime.NumCPU())
	return err
}

// measure takes the parts in their order. After one that fails the others still have
// their turn, unless the device is lost.
func measure(ctx context.Context, s settings, space device.Space, out io.Writer, names ...string) error {
	var errs []error
	for _, p := range parts {
		if !slices.Contains(names, p.name) {
			continue
		}
		r := &report{out: out}
		if err := errors.Join(p.run(ctx, s, space, r), r.err); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			if errors.Is(err, device.ErrLost) || ctx.Err() != nil {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// verifyAll verifies the bundles of a folder.
func verifyAll(ctx context.Context, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	verified := 0
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if _, err := checksums(ctx, filepath.Join(folder, e.Name())); err != nil {
			return err
		}
		verified++
	}
	if verified == 0 {
		return fmt.Errorf("%s has no bundle", folder)
	}
	return nil
}
