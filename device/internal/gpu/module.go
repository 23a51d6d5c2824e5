package gpu

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math"
	"strings"

	"github.com/fieldstone-io/fieldstone/device"
)

type module struct{ *object }

type kernel struct {
	module *module
	name   string
	handle uintptr
}

// LoadModule implements [device.Space].
func (s *Space) LoadModule(image []byte) (device.Module, error) {
	m, err := s.loadModule(image, false)
	if err != nil {
		return nil, s.fail("load module", err)
	}
	return m, nil
}

func (s *Space) loadModule(image []byte, internal bool) (*module, error) {
	if len(image) == 0 {
		return nil, fmt.Errorf("%w: image is empty", device.ErrInvalid)
	}
	if err := checkELF(image); err != nil {
		return nil, fmt.Errorf("%w: image: %w", device.ErrInvalid, err)
	}
	o := s.newObject(moduleKind, s.api.CloseModule)
	o.internal = internal
	// The caller may do with its own what it likes afterwards.
	o.image = append(make([]byte, 0, len(image)+1), image...)
	o.image[:len(image)+1][len(image)] = 0
	var log string
	err := o.create(func() (m uintptr, c Code) {
		m, log, c = s.api.LoadModule(o.image)
		return m, c
	})
	if err, ok := err.(*driverError); ok {
		err.detail = s.refusal(strings.TrimSpace(log), image)
	}
	if err != nil {
		return nil, err
	}
	return &module{o}, nil
}

// refusal says what there is to know of an image that the driver didn't load.
func (s *Space) refusal(log string, image []byte) string {
	if log != "" {
		log += "; "
	}
	log += "the device is " + s.config.Properties.Arch
	if isFamily(image) {
		log += ", and the image a code object of version 6, which ROCm loads since 6.4"
	}
	return log
}

// isFamily reports whether an image is a code object of a version that has targets which
// stand for several architectures.
func isFamily(image []byte) bool {
	const (
		version  = 8 // where an ELF file has that of its format
		version6 = 4 // of code objects
	)
	return bytes.HasPrefix(image, []byte(elf.ELFMAG)) && len(image) > version && image[version] >= version6
}

// checkELF refuses an object file that claims to be longer than it is: drivers
// aren't told its length and would read on.
func checkELF(image []byte) error {
	if !bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return nil
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Offset+s.FileSize > uint64(len(image)) {
			return fmt.Errorf("section %s reaches past the end of the image", s.Name)
		}
	}
	return nil
}

// BoxModule implements [device.BoxKernels].
func (s *Space) BoxModule() (device.Module, error) {
	const op = "load module of box kernels"
	s.box.Lock()
	defer s.box.Unlock()
	if s.box.err != nil {
		return nil, s.box.err
	}
	if err := s.ready(); err != nil {
		return nil, s.fail(op, err)
	}
	if s.box.module == nil {
		m, err := s.loadBoxes()
		if err != nil {
			err = s.fail(op, err)
			if !s.isLost() {
				s.box.err = err
			}
			return nil, err
		}
		s.box.module = m
	}
	return ownModule{s.box.module}, nil
}

func (s *Space) loadBoxes() (*module, error) {
	image, err := s.config.BoxImage()
	if err != nil {
		return nil, err
	}
	return s.loadModule(image, true)
}

// ownModule is one that the space closes.
type ownModule struct{ *module }

func (m ownModule) Close() error {
	return m.space.fail("close module", fmt.Errorf("%w: the box kernels are the space's own", device.ErrInvalid))
}

func (m *module) Close() error { return m.free("close module") }

func (m *module) Kernel(name string) (device.Kernel, error) {
	k := &kernel{module: m, name: name}
	err := fmt.Errorf("%w: %q is no name", device.ErrNotFound, name)
	if !strings.Contains(name, "\x00") {
		err = m.use(nil, func() (c Code) {
			k.handle, c = m.space.api.Kernel(m.handle, name)
			return c
		})
	}
	if err != nil {
		return nil, m.space.fail(fmt.Sprintf("find kernel %q", name), err)
	}
	return k, nil
}

func (k *kernel) Name() string { return k.name }

func (s *stream) Launch(k device.Kernel, config device.LaunchConfig, args *device.Args) error {
	own, ok := k.(*kernel)
	if !ok || own.module.space != s.space {
		return s.space.fail("launch kernel", fmt.Errorf("%w: kernel is not one of this device", device.ErrInvalid))
	}
	l, err := launch(config)
	if err == nil {
		err = s.use(own.module.object, func() Code {
			s.space.launched.Store(own)
			return s.space.api.Launch(own.handle, l, s.handle, args)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("launch kernel %q", own.name), err)
	}
	return nil
}

func launch(config device.LaunchConfig) (l Launch, err error) {
	for a := range 3 {
		for _, n := range [...]int{config.Grid[a], config.Block[a], config.SharedBytes} {
			if n < 0 || n > math.MaxInt32 {
				return l, fmt.Errorf("%w: launch configuration %+v", device.ErrInvalid, config)
			}
		}
		l.Grid[a], l.Block[a] = uint32(max(config.Grid[a], 1)), uint32(max(config.Block[a], 1))
	}
	l.SharedBytes = uint32(config.SharedBytes)
	return l, nil
}
