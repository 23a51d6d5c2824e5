// Package kernels holds the device code of the backends, as a driver loads it. The
// sources are CUDA and HIP in one; scripts/kernels compiles them, and `make
// generate` calls it.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fieldstone-io/fieldstone/device"
)

//go:embed *.ptx *.hsaco
var files embed.FS

// PTX returns the kernels of [device.BoxKernels] for CUDA: a text with a NUL at its
// end, as cuModuleLoadData wants it.
func PTX() []byte { return ptx("box") }

// CodeObject returns the kernels of [device.BoxKernels] for HIP: those for the
// architecture alone, otherwise those for its family; see [Targets].
// [device.ErrUnsupported] says which ones there are.
func CodeObject(arch string) ([]byte, error) { return codeObject("box", arch) }

// TestPTX is PTX for the kernels that devicetest wants.
func TestPTX() []byte { return ptx("devicetest") }

// TestCodeObject is CodeObject for the kernels that devicetest wants.
func TestCodeObject(arch string) ([]byte, error) { return codeObject("devicetest", arch) }

func ptx(source string) []byte {
	text, err := files.ReadFile(source + ".ptx")
	if err != nil {
		panic(err) // embedded above
	}
	return append(text, 0)
}

func codeObject(source, arch string) ([]byte, error) {
	for _, target := range Targets(arch) {
		image, err := files.ReadFile(source + "." + target + ".hsaco")
		if err == nil {
			return image, nil
		}
	}
	return nil, fmt.Errorf("kernels for AMD architecture %q: %w: there are %s", arch, device.ErrUnsupported, strings.Join(targets(source), ", "))
}

// targets are those that there are files for.
func targets(source string) []string {
	names, err := fs.Glob(files, source+".*.hsaco")
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(name, source+"."), ".hsaco")
	}
	return names
}
