package plan

import (
	"fmt"
	"strings"
)

// The situations are variations of one: four fields of 256³ in slabs on two ranks,
// with a halo of two cells, in shared memory, without fsync.
type variation func(*Case)

func cells(x, y, z int) variation     { return func(c *Case) { c.Cells = [3]int{x, y, z} } }
func cube(n int) variation            { return cells(n, n, n) }
func processes(x, y, z int) variation { return func(c *Case) { c.Processes = [3]int{x, y, z} } }
func fields(n int) variation          { return func(c *Case) { c.Fields = n } }
func halo(n int) variation            { return func(c *Case) { c.Halo = n } }
func onDisk(c *Case)                  { c.Place = Disk }
func withFsync(c *Case)               { c.Place, c.Sync = Disk, true }

// The decompositions of 2 and 4 ranks. x is the fastest axis: a cut of it makes rows
// short and lets the ranks' pieces interleave.
var (
	slabs2  = processes(1, 1, 2)
	splitX2 = processes(2, 1, 1)
	slabs4  = processes(1, 1, 4)
	splitX4 = processes(2, 2, 1)
)

func situation(kind Kind, vary ...variation) Case {
	c := Case{Kind: kind, Cells: [3]int{256, 256, 256}, Processes: [3]int{1, 1, 2}, Fields: 4, Halo: 2, Place: Tmpfs}
	for _, v := range vary {
		v(&c)
	}
	c.Name = nameOf(c)
	return c
}

func nameOf(c Case) string {
	place := string(c.Place)
	if c.Sync {
		place += " + fsync"
	}
	n, p := c.Cells, c.Processes
	return fmt.Sprintf("%s %d x %dx%dx%d, ranks %dx%dx%d, halo %d, %s", c.Kind, c.Fields, n[0], n[1], n[2], p[0], p[1], p[2], c.Halo, place)
}

// OfFieldstone tells Fieldstone's own contestants from the others.
func OfFieldstone(contestant string) bool {
	for _, prefix := range []string{"fieldstone", "inplace", "all-or-nothing", "pack-stream", "chunks"} {
		if strings.HasPrefix(contestant, prefix) {
			return true
		}
	}
	return contestant == "pack"
}
