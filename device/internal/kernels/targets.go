package kernels

import "strings"

// families are the targets of code objects that serve several architectures of AMD, as
// LLVM's "User Guide for AMDGPU Backend" lists them under "Generic Processors". Each
// leaves out what not all of its members have.
//
// gfx908 and gfx90a are in none, and gfx942 and gfx950 in one that the compiler which
// makes our code objects doesn't know.
var families = map[string][]string{
	"gfx9-generic":    {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"},
	"gfx10-1-generic": {"gfx1010", "gfx1011", "gfx1012", "gfx1013"},
	"gfx10-3-generic": {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"},
	"gfx11-generic":   {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"},
	"gfx12-generic":   {"gfx1200", "gfx1201"},
}

var familyOf = func() map[string]string {
	of := map[string]string{}
	for family, members := range families {
		for _, m := range members {
			of[m] = family
		}
	}
	return of
}()

// Targets returns the targets whose code objects run on a device, the one that is made
// for it alone first. The architecture is as the driver names it,
// "gfx90a:sramecc+:xnack-"; what follows the colon doesn't matter.
func Targets(arch string) []string {
	arch, _, _ = strings.Cut(arch, ":")
	if family, ok := familyOf[arch]; ok {
		return []string{arch, family}
	}
	return []string{arch}
}
