package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestMain(m *testing.M) {
	readAgainAfter = time.Millisecond
	os.Exit(mpitest.Main(m))
}

// space tells apart the kinds of fields that a bundle takes.
type space struct {
	single   bool // float32
	onDevice bool
	path     field.Path // from and to the device
}

func (s space) String() string {
	return fmt.Sprintf("%s%s", map[bool]string{false: "float64", true: "float32"}[s.single],
		map[bool]string{false: "", true: " on a device, " + s.path.String()}[s.onDevice])
}

// part is what one rank has of a state: its fields, whose cells are a function of
// their global indices, and whose ghost cells have bits of their own.
type part struct {
	ids    []string
	spaces []space
	fields []bitField
	on     device.Space     // nil: there is no field on a device
	device *emulated.Device // the same, if that is what it is
}

// bitField is a field whose cells are seen as the bits of their float64 on disk.
type bitField interface {
	field.Any
	fill(at func(cell [3]int, owned bool, index int) uint64) error
	compare(at func(cell [3]int, owned bool, index int) uint64) error
	Transfers() field.Transfers
	Free() error
}

// newPart makes fields "a", "b", ... of the given kinds. Ghost cells are filled,
// owned cells hold a value that no state has.
func newPart(domain grid.Domain, box grid.Box, halo [3]int, spaces ...space) (*part, error) {
	open := func() (device.Space, error) { return emulated.New() }
	return newPartOn(open, domain, box, halo, spaces...)
}

// newPartOn is newPart with a device of another kind.
func newPartOn(open func() (device.Space, error), domain grid.Domain, box grid.Box, halo [3]int, spaces ...space) (*part, error) {
	p := &part{spaces: spaces}
	for i, s := range spaces {
		opts := []field.Option{field.HaloXYZ(halo[0], halo[1], halo[2])}
		if s.onDevice {
			if p.on == nil {
				dev, err := open()
				if err != nil {
					return nil, errors.Join(err, p.close())
				}
				p.on = dev
				p.device, _ = dev.(*emulated.Device)
			}
			opts = append(opts, field.In(p.on), field.Transfer(s.path))
		}
		var f bitField
		var err error
		if s.single {
			f, err = newTyped(domain, box, opts, widenBits, narrowBits)
		} else {
			f, err = newTyped(domain, box, opts, math.Float64bits, math.Float64frombits)
		}
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.ids = append(p.ids, string(rune('a'+i)))
		p.fields = append(p.fields, f)
		if err := f.fill(blank); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *part) close() error {
	var err error
	for _, f := range p.fields {
		err = errors.Join(err, f.Free())
	}
	if p.on != nil {
		err = errors.Join(err, p.on.Close())
	}
	return err
}

// set brings the owned cells to the state of an increment.
func (p *part) set(increment int64) error {
	for i, f := range p.fields {
		if err := f.fill(p.cells(i, increment)); err != nil {
			return err
		}
	}
	return nil
}

// check reports whether all cells have exactly the bits of an increment's state,
// ghost cells those that they were made with.
func (p *part) check(increment int64) error { return p.compareWith(increment, p.cells) }

// untouched reports whether no cell has changed since the part was made.
func (p *part) untouched() error {
	return p.compareWith(0, func(int, int64) func([3]int, bool, int) uint64 { return blank })
}

func (p *part) compareWith(increment int64, at func(i int, increment int64) func([3]int, bool, int) uint64) error {
	for i, f := range p.fields {
		if err := f.compare(at(i, increment)); err != nil {
			return fmt.Errorf("field %q, %v: %w", p.ids[i], p.spaces[i], err)
		}
	}
	return nil
}

func (p *part) cells(i int, increment int64) func([3]int, bool, int) uint64 {
	return func(cell [3]int, owned bool, index int) uint64 {
		if !owned {
			return blank(cell, false, index)
		}
		return cellBits(p.ids[i], p.spaces[i].single, increment, cell)
	}
}

func (p *part) named() []field.Named {
	list := make([]field.Named, len(p.ids))
	for i, id := range p.ids {
		list[i] = field.Named{ID: id, Field: p.fields[i]}
	}
	return list
}

func (p *part) state(increment int64) State {
	return State{Fields: p.named(), Time: testTime(increment), Increment: increment, ResultCounter: 2 * increment, Method: "euler"}
}

// blank gives each cell of new fields bits of its own. All of them are values of
// float32 too.
func blank(_ [3]int, owned bool, index int) uint64 {
	if owned {
		return widenBits(math.Float32frombits(0x7fa00000 | uint32(index)&0xffff)) // a signalling NaN
	}
	return widenBits(math.Float32frombits(0xff900000 | uint32(index)&0xffff))
}

// cellBits is cell (i, j, k) of a field in the state of an increment: any bits,
// NaNs with payloads, infinities, zeros of both signs and subnormals among them.
func cellBits(id string, single bool, increment int64, cell [3]int) uint64 {
	h := math.Float64bits(cellValue(id, increment, cell))
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	if single {
		b := uint32(h >> 8)
		switch h % 7 {
		case 0:
			b = []uint32{0, 1 << 31, 1, 1<<31 | 0x7fffff, 0x7f800000, 0xff800000, 0x7fc00abc, 0xff800001}[h>>40%8]
		case 1:
			b = b&^(0xff<<23) | 0x7f800000
		}
		return widenBits(math.Float32frombits(b))
	}
	switch h % 7 {
	case 0:
		return []uint64{0, 1 << 63, 1, 1<<63 | 0xfffffffffffff, 0x7ff << 52, 0xfff << 52, 0x7ff8000000000abc, 0xfff0000000000001}[h>>40%8]
	case 1:
		return h&^(0x7ff<<52) | 0x7ff<<52
	}
	return h
}

// widenBits are the bits of the float64 that equals f. NaNs keep their payload:
// the conversion of the language makes them quiet.
func widenBits(f float32) uint64 {
	b := math.Float32bits(f)
	if f != f {
		return uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29
	}
	return math.Float64bits(float64(f))
}

func narrowBits(b uint64) float32 {
	if f := math.Float64frombits(b); f == f {
		return float32(f)
	}
	return math.Float32frombits(uint32(b>>63)<<31 | 0x7f800000 | uint32(b>>29)&0x7fffff)
}

type typed[T float32 | float64] struct {
	*field.Field[T]
	bits  func(T) uint64
	value func(uint64) T
}

func newTyped[T float32 | float64](domain grid.Domain, box grid.Box, opts []field.Option, bits func(T) uint64, value func(uint64) T) (bitField, error) {
	f, err := field.New[T](domain, box, opts...)
	if err != nil {
		return nil, err
	}
	return typed[T]{f, bits, value}, nil
}

func (f typed[T]) fill(at func(cell [3]int, owned bool, index int) uint64) error {
	data, err := f.MutableView()
	if err != nil {
		return err
	}
	f.each(func(cell [3]int, owned bool, index int) bool {
		data[index] = f.value(at(cell, owned, index))
		return true
	})
	return f.deviceNewer(data)
}

// deviceNewer leaves the cells on the device only, where a field has one.
func (f typed[T]) deviceNewer(mirror []T) error {
	if f.Stream() == nil {
		return nil
	}
	if err := f.Upload(); err != nil {
		return err
	}
	for i := range mirror {
		mirror[i] = 77
	}
	return f.NoteDeviceWrite()
}

// compare looks at the cells on the device, where a field has one.
func (f typed[T]) compare(at func(cell [3]int, owned bool, index int) uint64) error {
	if f.Stream() != nil {
		if f.Residency() == field.HostNewer {
			return errors.New("the cells were not uploaded")
		}
		if err := f.NoteDeviceWrite(); err != nil {
			return err
		}
	}
	data, err := f.View()
	if err != nil {
		return err
	}
	f.each(func(cell [3]int, owned bool, index int) bool {
		if got, want := f.bits(data[index]), at(cell, owned, index); got != want {
			err = fmt.Errorf("cell %v (owned %t) has the bits %016x: want %016x", cell, owned, got, want)
		}
		return err == nil
	})
	return err
}

func (f typed[T]) each(do func(cell [3]int, owned bool, index int) bool) {
	for c := range f.Padded().Cells() {
		cell := f.Global(c[0], c[1], c[2])
		owned := true
		for axis := range 3 {
			owned = owned && 0 <= c[axis] && c[axis] < f.Box().Size[axis]
		}
		if !do(cell, owned, f.Index(c[0], c[1], c[2])) {
			return
		}
	}
}

// fileBytes is what the file of a field must hold, by plain index arithmetic.
func fileBytes(domain grid.Domain, id string, single bool, increment int64) []byte {
	var b []byte
	for k := range domain.Size[2] {
		for j := range domain.Size[1] {
			for i := range domain.Size[0] {
				b = binary.LittleEndian.AppendUint64(b, cellBits(id, single, increment, [3]int{i, j, k}))
			}
		}
	}
	return b
}

// countNonFinite counts the cells of a file that are NaN or infinite, one by one.
func countNonFinite(file []byte) (n int64) {
	for ; len(file) > 0; file = file[8:] {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(file)); math.IsNaN(v) || math.IsInf(v, 0) {
			n++
		}
	}
	return n
}

// checkBundle reports whether the bundle at dir is the state of an increment:
// every byte of its fields, their checksums by another implementation, and the
// numbers of cells that aren't finite.
func checkBundle(fsys vfs.FS, dir string, domain grid.Domain, increment int64, spaces ...space) error {
	b, err := openBundle(fsys, dir)
	if err != nil {
		return err
	}
	err = b.Verify(context.Background(), nil)
	if m := b.Metadata(); err == nil && (m.AcceptedIncrement != increment || m.AcceptedTime != testTime(increment) ||
		m.ResultCounter != 2*increment || m.MethodIdentity != "euler" || m.Domain != domain || len(m.Fields) != len(spaces)) {
		err = fmt.Errorf("%s: metadata %+v are not those of increment %d", dir, m, increment)
	}
	for i, s := range spaces {
		if err != nil {
			break
		}
		id := string(rune('a' + i))
		want := fileBytes(domain, id, s.single, increment)
		var got []byte
		if got, err = vfs.ReadFile(fsys, filepath.Join(dir, "fields", id+".bin"), 16<<20); err != nil {
			break
		}
		sum, _ := b.Checksum(id)
		switch {
		case !bytes.Equal(got, want):
			err = fmt.Errorf("%s: field %q: the file has other bytes than the state", dir, id)
		case sum != crc64nvme.Checksum(got):
			err = fmt.Errorf("%s: field %q: recorded checksum %016x, that of the whole file is %016x", dir, id, sum, crc64nvme.Checksum(got))
		case b.Metadata().Writer.NonFinite[id] != countNonFinite(got):
			err = fmt.Errorf("%s: field %q: recorded are %d cells that aren't finite, the file has %d",
				dir, id, b.Metadata().Writer.NonFinite[id], countNonFinite(got))
		}
	}
	return errors.Join(err, b.Close())
}

// sameOutcome returns this rank's err, after a look whether all ranks have one of
// the same text. The ranks need not be well otherwise.
func sameOutcome(t *mpitest.T, c *comm.Comm, err error) error {
	t.Helper()
	texts, gerr := c.AllGather(context.Background(), []byte(fmt.Sprint(err)))
	if gerr != nil {
		t.Fatalf("the ranks cannot compare their outcomes: %v; mine: %v", gerr, err)
	}
	for r, text := range texts {
		if string(text) != string(texts[0]) {
			t.Errorf("the outcomes differ: rank 0 has %s, rank %d has %s", texts[0], r, text)
		}
	}
	return err
}

// must ends the test on all ranks if any has an error.
func must(t *mpitest.T, c *comm.Comm, err error) {
	t.Helper()
	if err := c.Agree(context.Background(), err); err != nil {
		t.Fatal(err)
	}
}

// onRankZero runs f on rank 0 and ends the test on all ranks if it fails.
func onRankZero(t *mpitest.T, c *comm.Comm, f func() error) {
	t.Helper()
	var err error
	if c.Rank() == 0 {
		err = comm.Protect(f)
	}
	must(t, c, err)
}

// wantEntries reports whether a directory holds exactly the given names.
func wantEntries(dir string, want ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s has %q: want %q", dir, got, want)
	}
	return nil
}

// onComponents runs a test for each library of collective files.
func onComponents(t *testing.T, test func(t *testing.T, opts ...mpitest.Option)) {
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) { test(t, component.Options...) })
	}
}

// sharedEnv tells the ranks of a launch what the test prepared before it.
const sharedEnv = "PUBLISH_TEST_SHARED"

// sharedDir is a directory that the launches of a test have in common. prepare
// fills it once, before the first of them.
func sharedDir(t *testing.T, prepare func(dir string)) string {
	t.Helper()
	if dir := os.Getenv(sharedEnv); dir != "" {
		return dir
	}
	dir := t.TempDir()
	if prepare != nil {
		prepare(dir)
	}
	t.Setenv(sharedEnv, dir)
	return dir
}

// patience is how long something may take that has every reason to happen: it only
// matters when something hangs.
const patience = 5 * time.Minute
