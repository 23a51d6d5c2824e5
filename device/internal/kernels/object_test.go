package kernels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// What the loader of ROCm reads, as LLVM's "User Guide for AMDGPU Backend" describes
// code objects of versions 4 and 6. The latter have the version of a family in the
// upper byte of the flags.
func TestCodeObjectsAreWhatTheLoaderWants(t *testing.T) {
	const (
		machine = 224 // EM_AMDGPU
		osHSA   = 64
	)
	for _, tt := range []struct {
		arch, target  string
		version       uint8 // of the ABI: 2 in code object version 4, 4 in version 6
		flag, generic byte
	}{
		{"gfx908", "gfx908", 2, 0x30, 0},
		{"gfx90a", "gfx90a", 2, 0x3f, 0},
		{"gfx942", "gfx942", 2, 0x4c, 0},
		{"gfx1100", "gfx1100", 2, 0x41, 0},
		{"gfx906", "gfx9-generic", 4, 0x51, 1},
		{"gfx1010", "gfx10-1-generic", 4, 0x52, 1},
		{"gfx1030", "gfx10-3-generic", 4, 0x53, 1},
		{"gfx1151", "gfx11-generic", 4, 0x54, 1},
		{"gfx1201", "gfx12-generic", 4, 0x59, 1},
	} {
		arch := tt.arch
		box, err := CodeObject(arch + ":sramecc+:xnack-")
		if err != nil {
			t.Fatal(err)
		}
		suite, err := TestCodeObject(arch)
		if err != nil {
			t.Fatal(err)
		}
		if file, err := files.ReadFile("box." + tt.target + ".hsaco"); err != nil || !bytes.Equal(box, file) {
			t.Errorf("%s isn't served by the code object for %s: %v", arch, tt.target, err)
		}
		for _, object := range []struct {
			image     []byte
			arguments uint32 // bytes
			kernels   []string
		}{
			{box, 64, []string{"fieldstone_pack_f64", "fieldstone_pack_f32", "fieldstone_unpack_f64", "fieldstone_unpack_f32"}},
			{suite, 80, []string{"pack3d", "unpack3d"}},
		} {
			file, err := elf.NewFile(bytes.NewReader(object.image))
			if err != nil {
				t.Fatalf("%s: %v", arch, err)
			}
			if file.Machine != machine || file.OSABI != osHSA || file.ABIVersion != tt.version || object.image[48] != tt.flag || object.image[51] != tt.generic {
				t.Errorf("%s: machine %d, system %d, version %d, processor %#x, of family version %d, want %d, %d, %d, %#x, %d", arch,
					file.Machine, file.OSABI, file.ABIVersion, object.image[48], object.image[51], machine, osHSA, tt.version, tt.flag, tt.generic)
			}
			for _, name := range object.kernels {
				d := descriptor(t, file, name)
				for _, field := range []struct {
					what      string
					got, want uint32
				}{
					{"memory of the block", d[0], 0},
					{"memory for registers that spill", d[1], 0},
					// Exactly those that BoxKernel documents: none
					// that the runtime would have to add.
					{"bytes of arguments", d[2], object.arguments},
					// To nearest, subnormal numbers as they are.
					{"mode of arithmetic", d[12] >> 12 & 0xff, 0xf0},
				} {
					if field.got != field.want {
						t.Errorf("%s, %s: %s: %#x, want %#x", arch, name, field.what, field.got, field.want)
					}
				}
			}
		}
	}
}

// descriptor returns the 64 bytes that tell how a kernel is started.
func descriptor(t *testing.T, file *elf.File, kernel string) [16]uint32 {
	t.Helper()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name != kernel+".kd" {
			continue
		}
		section := file.Sections[s.Section]
		data, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		var d [16]uint32
		if err := binary.Read(bytes.NewReader(data[s.Value-section.Addr:]), binary.LittleEndian, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Fatalf("there is no kernel %s", kernel)
	return [16]uint32{}
}
