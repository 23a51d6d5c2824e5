package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The text for CUDA is assembled for each device, and the first one that a program in
// place of ptxas refuses, or for which it spills registers, is an error.
func TestKernelsAreAssembled(t *testing.T) {
	for _, tt := range []struct {
		name, ptxas  string
		want, refuse string // that is said, and whether it is an error
	}{
		{"all is well", good, "a.ptx: assembled for sm_70 sm_80 sm_90\n", ""},
		{"without ptxas", "", "not assembled: there is no ptxas here", ""},
		{"without an old device", strings.ReplaceAll(good, "sm_70,", ""), "not assembled for sm_70", ""},
		{"a text that is wrong", `case "$*" in *--help*) echo sm_70, sm_80, sm_90 ;; *sm_80*) echo "unexpected token"; exit 255 ;; esac`, "", "a.ptx for sm_80: unexpected token"},
		{"registers are spilled", strings.ReplaceAll(good, "0 bytes spill loads", "8 bytes spill loads"), "", "a.ptx for sm_70: registers are spilled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "a.ptx"), ".version 6.0\n")
			ptxas := filepath.Join(dir, "ptxas")
			if tt.ptxas != "" {
				put(t, ptxas, "#!/bin/sh\n"+tt.ptxas+"\n")
			}
			command := exec.Command("./kernels", "-assemble", dir)
			command.Env = append(os.Environ(), "PTXAS="+ptxas)
			out, err := command.CombinedOutput()
			if (err != nil) != (tt.refuse != "") || !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), tt.refuse) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

const good = `case "$*" in
*--help*) echo sm_70, sm_80, sm_90 ;;
*) echo "ptxas info    : Compiling entry function 'k'"
   echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" ;;
esac`
