//go:build linux && (amd64 || arm64)

package gputest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/device"
)

// script uses each method of a space, and goes on after errors as far as it can.
type script struct {
	image  []byte
	errs   []error
	opened bool
}

// try notes an error and reports whether there was none.
func (s *script) try(err error) bool {
	if err != nil {
		s.errs = append(s.errs, err)
	}
	return err == nil
}

// free frees or waits for something, again if that fails on a device that isn't
// lost.
func (s *script) free(free func() error) {
	if err := free(); !s.try(err) && !errors.Is(err, device.ErrLost) {
		s.try(free())
	}
}

// run opens a space, uses it and closes it.
func (s *script) run(name string) {
	space, err := device.Open(name)
	if !s.try(err) {
		return
	}
	s.opened = true
	s.use(space)
	s.free(space.Close)
}

func (s *script) use(space device.Space) {
	_, err := space.MemoryInfo()
	s.try(err)
	pinned, err := space.AllocateHost(4096)
	if !s.try(err) {
		return
	}
	defer s.free(pinned.Free)
	own := make([]byte, 4096)
	if r, err := space.RegisterHost(own); s.try(err) {
		s.free(r.Free)
	}
	m, err := space.Allocate(4096)
	if !s.try(err) {
		return
	}
	defer s.free(m.Free)
	if w, err := space.WrapMemory(m.Ptr(), 4096); s.try(err) {
		s.free(w.Free)
	}
	_, _, err = space.AddressRange(m.Ptr())
	s.try(err)
	if w, err := space.WrapStream(0); s.try(err) {
		s.free(w.Close)
	}
	st, err := space.NewStream()
	if !s.try(err) {
		return
	}
	defer s.free(st.Close)
	s.copies(st, m.Ptr(), pinned.Bytes(), own)
	if e, err := space.NewEvent(); s.try(err) {
		s.try(st.Record(e))
		s.try(st.Wait(e))
		s.try(e.Synchronize())
		_, err = e.Query()
		s.try(err)
		s.free(e.Close)
	}
	if mod, err := space.LoadModule(s.image); s.try(err) {
		if k, err := mod.Kernel("pack3d"); s.try(err) {
			args := new(device.Args).Ptr(m.Ptr()).Ptr(m.Ptr().Add(2048))
			for _, n := range []int64{0, 0, 0, 4, 4, 4, 4, 16} {
				args.Int64(n)
			}
			s.try(st.Launch(k, device.LaunchConfig{Grid: [3]int{1}, Block: [3]int{256}}, args))
		}
		s.try(st.Synchronize())
		s.free(mod.Close)
	}
	_, err = space.(device.BoxKernels).BoxModule()
	s.try(err)
	_, err = st.Query()
	s.try(err)
	s.free(space.Synchronize) // nothing is freed before all work is over
}

func (s *script) copies(st device.Stream, p device.Ptr, pinned, own []byte) {
	pitch := device.Pitch{Row: 64, Rows: 8}
	box := device.Extent{Row: 40, Rows: 5, Slices: 3}
	s.try(st.CopyToDevice(p, pinned))
	s.try(st.CopyToHost(pinned, p))
	s.try(st.CopyToDevice(p, own))
	s.try(st.CopyOnDevice(p, p.Add(2048), 1024))
	s.try(st.CopyBoxToDevice(p, pitch, pinned, pitch, box))
	s.try(st.CopyBoxToHost(pinned, pitch, p, pitch, box))
	s.try(st.CopyBoxOnDevice(p, pitch, p.Add(2048), pitch, box))
	s.try(st.Fill(p, 0, 8))
}

// check compares the errors of a run with what a fault must lead to.
func (s *script) check(f Fault, name string) error {
	if len(s.errs) == 0 {
		return errors.New("no error")
	}
	first := s.errs[0]
	if code := fmt.Sprintf("(code %d)", f.Code); !contains(first, f.Name, code) {
		return fmt.Errorf("the error has not %q and %q: %w", f.Name, code, first)
	}
	if !errors.Is(first, f.Is) {
		return fmt.Errorf("the error isn't %q: %w", f.Is, first)
	}
	if !s.opened {
		if len(s.errs) > 1 || !errors.Is(first, device.ErrUnavailable) {
			return fmt.Errorf("opening fails with %w", errors.Join(s.errs...))
		}
		return nil
	}
	e, ok := errors.AsType[*device.Error](first)
	if !ok || e.Space != name || e.Op == "" || e.Code != f.Code {
		return fmt.Errorf("the error is %#v", first)
	}
	if f.Sticky != errors.Is(first, device.ErrLost) {
		return fmt.Errorf("the device should be lost: %t: %w", f.Sticky, first)
	}
	for _, err := range s.errs[1:] {
		if !f.Sticky || !errors.Is(err, device.ErrLost) || !errors.Is(err, f.Is) || !contains(err, e.Op, f.Name) {
			return fmt.Errorf("one fault, more than one error: %w", errors.Join(s.errs...))
		}
	}
	return nil
}

func contains(err error, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(err.Error(), p) })
}
