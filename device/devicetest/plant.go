package devicetest

import (
	"errors"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// Bug is a mistake that [Plant] puts into a space.
type Bug string

// The bugs. Each must be noticed by a check of the suite, on a lazy device every
// time.
const (
	StreamSynchronizeReturnsAtOnce Bug = "stream synchronize returns at once"
	SpaceSynchronizeReturnsAtOnce  Bug = "space synchronize returns at once"
	EventSynchronizeReturnsAtOnce  Bug = "event synchronize returns at once"
	WaitDoesNothing                Bug = "wait does nothing"
	RecordDoesNothing              Bug = "record does nothing"
	StreamQueryIsAlwaysTrue        Bug = "stream query is always true"
	EventQueryIsAlwaysTrue         Bug = "event query is always true"
	CopyToHostLosesTheLastByte     Bug = "copy to host loses the last byte"
	CopyToHostReadsTheAddress      Bug = "copy to host reads the device's address itself"
	CopyToDeviceGoesAstray         Bug = "copy to device goes astray"
	FillIsOneTooLong               Bug = "fill is one byte too long"
	BoxIgnoresPitch                Bug = "box copies ignore the device's pitch"
	BoxLosesASlice                 Bug = "box copies lose the last slice"
	LaunchDoesNothing              Bug = "launch does nothing"
	BoxKernelsAreMixedUp           Bug = "box kernels are mixed up"
	FreeTwiceIsFine                Bug = "freeing twice is fine"
	HostAddressIsFine              Bug = "wrapping a host address is fine"
	ErrorsArePlain                 Bug = "errors of allocate are plain"
	OthersThingsAreFine            Bug = "events of another space are fine"
)

// bugs are all of them, with the check that notices each.
var bugs = []struct {
	bug   Bug
	check string
}{
	{StreamSynchronizeReturnsAtOnce, "stream synchronize waits for the stream"},
	{SpaceSynchronizeReturnsAtOnce, "space synchronize waits for every stream"},
	{EventSynchronizeReturnsAtOnce, "event synchronize waits for what was recorded"},
	{WaitDoesNothing, "an event orders two streams"},
	{RecordDoesNothing, "an event orders two streams"},
	{StreamQueryIsAlwaysTrue, "a stream's query tells the truth"},
	{EventQueryIsAlwaysTrue, "an event's query tells the truth"},
	{CopyToHostLosesTheLastByte, "linear copies move every byte"},
	{CopyToHostReadsTheAddress, "linear copies move every byte"},
	{CopyToDeviceGoesAstray, "linear copies move every byte"},
	{FillIsOneTooLong, "linear copies move nothing else"},
	{BoxIgnoresPitch, "box copies move the box and nothing else"},
	{BoxLosesASlice, "box copies move the box and nothing else"},
	{LaunchDoesNothing, "kernels run by name with packed arguments"},
	{BoxKernelsAreMixedUp, "box kernels move the range and nothing else"},
	{FreeTwiceIsFine, "memory can't be freed twice"},
	{HostAddressIsFine, "host addresses are no device memory"},
	{ErrorsArePlain, "sizes that make no sense are refused"},
	{OthersThingsAreFine, "things of another space are refused"},
}

// Bugs returns all of them.
func Bugs() []Bug {
	all := make([]Bug, len(bugs))
	for i, b := range bugs {
		all[i] = b.bug
	}
	return all
}

// noticedBy returns the name of the check that notices the bug.
func (b Bug) noticedBy() string {
	for _, x := range bugs {
		if x.bug == b {
			return x.check
		}
	}
	return ""
}

// Plant returns a space with a bug, around one that works. Tests use it to
// show that they would notice.
func Plant(space device.Space, bug Bug) device.Space {
	planted := &plantedSpace{Space: space, bug: bug}
	planted.self = planted
	if box, ok := space.(device.BoxKernels); ok {
		planted.self = &plantedBoxes{planted, box}
	}
	return planted.self
}

// plantedBoxes is a plantedSpace that has box kernels.
type plantedBoxes struct {
	*plantedSpace
	boxes device.BoxKernels
}

func (s *plantedBoxes) BoxModule() (device.Module, error) {
	m, err := s.boxes.BoxModule()
	if err != nil || s.bug != BoxKernelsAreMixedUp {
		return m, err
	}
	return mixedUp{m}, nil
}

// mixedUp is a module of box kernels that moves float32 cells as float64.
type mixedUp struct{ device.Module }

func (m mixedUp) Kernel(name string) (device.Kernel, error) {
	switch device.BoxKernel(name) {
	case device.PackFloat32:
		name = string(device.PackFloat64)
	case device.UnpackFloat32:
		name = string(device.UnpackFloat64)
	}
	return m.Module.Kernel(name)
}

type plantedSpace struct {
	device.Space
	bug  Bug
	self device.Space // what Plant has returned
}

func (s *plantedSpace) Synchronize() error {
	if s.bug == SpaceSynchronizeReturnsAtOnce {
		return nil
	}
	return s.Space.Synchronize()
}

func (s *plantedSpace) NewStream() (device.Stream, error) {
	st, err := s.Space.NewStream()
	if err != nil {
		return nil, err
	}
	return &plantedStream{st, s}, nil
}

func (s *plantedSpace) WrapStream(handle uintptr) (device.Stream, error) {
	st, err := s.Space.WrapStream(handle)
	if err != nil {
		return nil, err
	}
	return &plantedStream{st, s}, nil
}

func (s *plantedSpace) NewEvent() (device.Event, error) {
	e, err := s.Space.NewEvent()
	if err != nil {
		return nil, err
	}
	return &plantedEvent{e, s.bug}, nil
}

func (s *plantedSpace) Allocate(bytes int64) (device.Memory, error) {
	m, err := s.Space.Allocate(bytes)
	if err != nil {
		if e, ok := err.(*device.Error); ok && s.bug == ErrorsArePlain {
			return nil, e.Err
		}
		return nil, err
	}
	return &plantedMemory{m, s.bug, false}, nil
}

func (s *plantedSpace) WrapMemory(p device.Ptr, bytes int64) (device.Memory, error) {
	m, err := s.Space.WrapMemory(p, bytes)
	if err != nil && s.bug == HostAddressIsFine {
		return nil, nil
	}
	return m, err
}

type plantedMemory struct {
	device.Memory
	bug   Bug
	freed bool
}

func (m *plantedMemory) Free() error {
	if m.freed && m.bug == FreeTwiceIsFine {
		return nil
	}
	m.freed = true
	return m.Memory.Free()
}

type plantedEvent struct {
	device.Event
	bug Bug
}

func (e *plantedEvent) Synchronize() error {
	if e.bug == EventSynchronizeReturnsAtOnce {
		return nil
	}
	return e.Event.Synchronize()
}

func (e *plantedEvent) Query() (bool, error) {
	if e.bug == EventQueryIsAlwaysTrue {
		return true, nil
	}
	return e.Event.Query()
}

type plantedStream struct {
	device.Stream
	space *plantedSpace
}

func (s *plantedStream) Space() device.Space { return s.space.self }

func (s *plantedStream) Synchronize() error {
	if s.space.bug == StreamSynchronizeReturnsAtOnce {
		return nil
	}
	return s.Stream.Synchronize()
}

func (s *plantedStream) Query() (bool, error) {
	if s.space.bug == StreamQueryIsAlwaysTrue {
		return true, nil
	}
	return s.Stream.Query()
}

func (s *plantedStream) Record(e device.Event) error {
	if s.space.bug == RecordDoesNothing {
		return nil
	}
	err := s.Stream.Record(inner(e))
	if s.space.bug == OthersThingsAreFine && errors.Is(err, device.ErrInvalid) {
		return nil
	}
	return err
}

func (s *plantedStream) Wait(e device.Event) error {
	if s.space.bug == WaitDoesNothing {
		return nil
	}
	return s.Stream.Wait(inner(e))
}

func inner(e device.Event) device.Event {
	if p, ok := e.(*plantedEvent); ok {
		return p.Event
	}
	return e
}

func (s *plantedStream) CopyToHost(dst []byte, src device.Ptr) error {
	switch {
	case s.space.bug == CopyToHostLosesTheLastByte && len(dst) > 0:
		dst = dst[:len(dst)-1]
	case s.space.bug == CopyToHostReadsTheAddress:
		copy(dst, unsafe.Slice(*(**byte)(unsafe.Pointer(&src)), len(dst)))
		return nil
	}
	return s.Stream.CopyToHost(dst, src)
}

func (s *plantedStream) CopyToDevice(dst device.Ptr, src []byte) error {
	if s.space.bug == CopyToDeviceGoesAstray && len(src) > 1 {
		dst, src = dst.Add(1), src[:len(src)-1]
	}
	return s.Stream.CopyToDevice(dst, src)
}

func (s *plantedStream) Fill(dst device.Ptr, value byte, bytes int64) error {
	if s.space.bug == FillIsOneTooLong && bytes > 0 && bytes < 1000 {
		bytes++
	}
	return s.Stream.Fill(dst, value, bytes)
}

// box spoils the device's pitch and the extent of a box copy.
func (s *plantedStream) box(p device.Pitch, e device.Extent) (device.Pitch, device.Extent) {
	switch {
	case s.space.bug == BoxIgnoresPitch && e.Row > 0:
		p = device.Pitch{Row: e.Row, Rows: e.Rows}
	case s.space.bug == BoxLosesASlice && e.Slices > 1:
		e.Slices--
	}
	return p, e
}

func (s *plantedStream) CopyBoxToDevice(dst device.Ptr, dp device.Pitch, src []byte, sp device.Pitch, e device.Extent) error {
	dp, e = s.box(dp, e)
	return s.Stream.CopyBoxToDevice(dst, dp, src, sp, e)
}

func (s *plantedStream) CopyBoxToHost(dst []byte, dp device.Pitch, src device.Ptr, sp device.Pitch, e device.Extent) error {
	sp, e = s.box(sp, e)
	return s.Stream.CopyBoxToHost(dst, dp, src, sp, e)
}

func (s *plantedStream) CopyBoxOnDevice(dst device.Ptr, dp device.Pitch, src device.Ptr, sp device.Pitch, e device.Extent) error {
	dp, e = s.box(dp, e)
	return s.Stream.CopyBoxOnDevice(dst, dp, src, sp, e)
}

func (s *plantedStream) Launch(k device.Kernel, config device.LaunchConfig, args *device.Args) error {
	if s.space.bug == LaunchDoesNothing {
		return nil
	}
	return s.Stream.Launch(k, config, args)
}
