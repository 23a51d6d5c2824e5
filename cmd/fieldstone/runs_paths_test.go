//go:build hdf5

package main

import "testing"

// runFileCommands are those that want a run file at a path.
func runFileCommands(path string) [][]string {
	return [][]string{
		{"settings", path}, {"settings", "diff", path, path}, {"join", path, "-o", "out.h5"}, {"xdmf", path, "-o", "out.xmf"},
	}
}

func TestUsageOfRunFileCommands(t *testing.T) {
	checkUsage(t, []usage{
		{[]string{"settings"}, 2, "", "fieldstone: settings: want a run file, and a section at most\ntry 'fieldstone settings --help'\n"},
		{[]string{"settings", "a", "b", "c"}, 2, "", "fieldstone: settings: want a run file, and a section at most, got 3 arguments\n"},
		{[]string{"settings", "diff", "a"}, 2, "", "fieldstone: diff: want two run files\ntry 'fieldstone settings diff --help'\n"},
		{[]string{"settings", "diff", "-q", "--json", "a", "b"}, 2, "", "fieldstone: if any flags in the group [quiet json] are set none of the others can be"},
		{[]string{"segments", "a"}, 2, "", "fieldstone: segments: want a directory and the name of a run\n"},
		{[]string{"join", "-o", "c.h5"}, 2, "", "fieldstone: join: want the files to join\n"},
		{[]string{"join", "a.h5", "b.h5"}, 2, "", "fieldstone: join: want the name of the joined file, -o OUT\ntry 'fieldstone join --help'\n"},
		{[]string{"join", "a.h5", "-o"}, 2, "", "fieldstone: flag needs an argument: 'o' in -o\n"},
		{[]string{"xdmf"}, 2, "", "fieldstone: xdmf: want a run file, or the segments of a run\n"},
		{[]string{"xdmf", "a.h5", "b.h5"}, 2, "", "fieldstone: xdmf: several files need the name of the XDMF file, -o OUT\n"},
		{[]string{"xdmf", "--json", "a.h5"}, 2, "", "fieldstone: unknown flag: --json\n"},
		{[]string{"settings", "dif", "a", "b"}, 2, "", "fieldstone: settings: want a run file, and a section at most, got 3 arguments, did you mean diff?\n"},
		{[]string{"settings", "diff", "--setpu", "a", "b"}, 2, "", "fieldstone: unknown flag: --setpu, did you mean --setup?\n"},
		{[]string{"help", "settings", "dif"}, 2, "", "fieldstone: unknown command \"dif\", did you mean diff?\n"},
		{[]string{"help", "settings", "diff"}, 0, "Compare the settings", ""},
		{[]string{"segmnts", "a", "b"}, 2, "", "fieldstone: unknown command \"segmnts\", did you mean segments?\n"},
	})
}
