package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

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
	size    int // cells of the fields along each axis
	fields  int // of a bundle
	repeats int
	folder  string
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var s settings
	flags := flag.NewFlagSet("device", flag.ContinueOnError)
	flags.StringVar(&s.device, "device", "cuda:0", "the device")
	flags.IntVar(&s.size, "size", 384, "cells of each field along each axis")
	flags.IntVar(&s.fields, "fields", 2, "fields of a bundle")
	flags.IntVar(&s.repeats, "repeats", 11, "repetitions of each measure")
	flags.StringVar(&s.folder, "folder", "", "where bundles are written (default: shared memory where it has the space, or the temporary folder)")
	list := flags.Bool("list", false, "only say what the device is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.size < 4 || s.fields < 1 || s.repeats < 1 {
		return errors.New("size must be at least 4, fields and repeats at least 1")
	}
	space, err := device.Open(s.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	if err := describe(space, out); err != nil || *list {
		return err
	}
	return measure(ctx, s, space, out)
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

// measure prints what it finds, also when something is wrong.
func measure(ctx context.Context, s settings, space device.Space, out io.Writer) error {
	found := &table{}
	var err error
	for _, part := range []func(context.Context, settings, device.Space, *table) error{kernels, readings, bundles} {
		if err = part(ctx, s, space, found); err != nil {
			break
		}
	}
	return errors.Join(err, found.write(out))
}

// logger keeps what fields warn of for the end of the table.
func (t *table) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&t.said, nil)) }
