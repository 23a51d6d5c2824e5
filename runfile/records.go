package runfile

import (
	"errors"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// The attribute "kind" of a group tells apart what all are groups in a file.
const (
	kindAttribute = "kind"
	kindRecord    = "record"
	kindRecords   = "records"
	kindArrays    = "arrays"

	// orderName names the dataset with the names of a list of records, in order.
	orderName = "order"
)

// maxRecordBytes is how much data a record is read from a file. Datasets may have many
// names, so the size of the file is no limit.
const maxRecordBytes = 1 << 30

// writeRecord writes a record as a group. Nothing must be at the path.
func writeRecord(f *h5.File, path string, r record.Record) error {
	return writeRecordAs(f, path, r, nil)
}

// writeRecordAs is writeRecord for one that was read from a file: the groups at the paths
// of lists become those of a list of records of another writer again, without a kind.
func writeRecordAs(f *h5.File, path string, r record.Record, lists map[string]bool) error {
	list := lists[path] && allRecords(r)
	var err error
	if list {
		err = f.CreateGroup(path)
	} else {
		err = writeGroup(f, path, kindRecord)
	}
	if err != nil {
		return err
	}
	for key, v := range r.All() {
		if inner, ok := v.Any().(record.Record); ok {
			err = writeRecordAs(f, h5.Join(path, key), inner, lists)
		} else {
			err = writeValue(f, h5.Join(path, key), v)
		}
		if err != nil {
			return err
		}
	}
	if list {
		return f.WriteStrings(h5.Join(path, orderName), r.Keys(), h5.Fixed)
	}
	return nil
}

// allRecords reports whether a record holds nothing but records, of which none takes the
// place of the order of a list.
func allRecords(r record.Record) bool {
	for key, v := range r.All() {
		if v.Kind() != record.Group || key == orderName {
			return false
		}
	}
	return true
}

func writeGroup(f *h5.File, path, kind string) error {
	if err := f.CreateGroup(path); err != nil {
		return err
	}
	return f.SetAttributeString(path, kindAttribute, kind)
}

func writeValue(f *h5.File, path string, value record.Value) error {
	switch v := value.Any().(type) {
	case []record.Array:
		if err := writeGroup(f, path, kindArrays); err != nil {
			return err
		}
		for i, a := range v {
			if err := writeArray(f, h5.Join(path, strconv.Itoa(i+1)), a); err != nil {
				return err
			}
		}
		return nil
	case record.Record:
		return writeRecord(f, path, v)
	case []record.Record:
		return writeRecords(f, path, v)
	}
	_, err := storePlain(f, path, value, false)
	return err
}

func writeRecords(f *h5.File, path string, list []record.Record) error {
	if err := writeGroup(f, path, kindRecords); err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, r := range list {
		var err error
		if names[i], err = r.Text("name"); err != nil {
			return err
		}
		if err := writeRecord(f, h5.Join(path, names[i]), r); err != nil {
			return err
		}
	}
	return f.WriteStrings(h5.Join(path, orderName), names, h5.Fixed)
}

func writeArray(f *h5.File, path string, a record.Array) error {
	_, err := storeArray(f, path, a, false)
	return err
}

// storePlain writes a value that is one dataset: a new one, or with over set in the place
// of one that is there. It reports false, and changes nothing, where that is of another
// type or shape.
func storePlain(f *h5.File, path string, value record.Value, over bool) (fits bool, err error) {
	switch v := value.Any().(type) {
	case bool:
		return storeNumbers(f, path, []bool{v}, over)
	case int64:
		return storeNumbers(f, path, []int64{v}, over)
	case uint64:
		return storeNumbers(f, path, []uint64{v}, over)
	case float64:
		return storeNumbers(f, path, []float64{v}, over)
	case string:
		if over {
			return f.OverwriteString(path, v)
		}
		return true, f.WriteString(path, v)
	case []string:
		if over {
			return f.OverwriteStrings(path, v)
		}
		return true, f.WriteStrings(path, v, h5.Fixed)
	case record.Array:
		return storeArray(f, path, v, over)
	}
	return false, in(f.Name(), path, ErrInput, "a %v can't be written", value.Kind())
}

func storeNumbers[T h5.Element](f *h5.File, path string, v []T, over bool, dims ...int) (fits bool, err error) {
	if over {
		return h5.Overwrite(f, path, v, dims...)
	}
	return true, h5.Write(f, path, v, dims...)
}

func storeArray(f *h5.File, path string, a record.Array, over bool) (fits bool, err error) {
	dims := a.Dims()
	switch v := a.Data().(type) {
	case []int8:
		return storeNumbers(f, path, v, over, dims...)
	case []int16:
		return storeNumbers(f, path, v, over, dims...)
	case []int32:
		return storeNumbers(f, path, v, over, dims...)
	case []int64:
		return storeNumbers(f, path, v, over, dims...)
	case []uint8:
		return storeNumbers(f, path, v, over, dims...)
	case []uint16:
		return storeNumbers(f, path, v, over, dims...)
	case []uint32:
		return storeNumbers(f, path, v, over, dims...)
	case []uint64:
		return storeNumbers(f, path, v, over, dims...)
	case []float32:
		return storeNumbers(f, path, v, over, dims...)
	case []float64:
		return storeNumbers(f, path, v, over, dims...)
	}
	return false, in(f.Name(), path, ErrInput, "an array of %v can't be written", a.Type())
}

// A node is an object below a group that is being read.
type node struct {
	name    string
	kind    h5.Kind
	members []*node // of a group, in order
	byName  map[string]*node
}

func newGroup(name string) *node {
	return &node{name: name, kind: h5.Group, byName: map[string]*node{}}
}

func (n *node) member(name string) *node { return n.byName[name] }

func (n *node) add(m *node) {
	n.members = append(n.members, m)
	n.byName[m.name] = m
}

// A recordReader reads a group as a record.
type recordReader struct {
	file *h5.File
	// drop tells of a dataset that can't be part of a record, or that is one, whether
	// to go on without it.
	drop func(path string, v record.Value, err error) bool
	left int64 // bytes that may still be read
	// lists are the paths of the groups that are lists of records but don't say so.
	lists map[string]bool
}

// readRecord reads a group as the record that it is. Groups of our writer come back
// type for type. Of others every group is a record, keyed by the names of its members;
// of a list of records in their order.
func readRecord(f *h5.File, path string) (record.Record, error) {
	r := recordReader{file: f, left: maxRecordBytes}
	return r.read(path)
}

func (r *recordReader) read(path string) (record.Record, error) {
	info, err := r.file.Stat(path)
	if err != nil {
		return record.Record{}, err
	}
	if info.Kind != h5.Group {
		return record.Record{}, in(r.file.Name(), path, h5.ErrKind, "a %v, not a group", info.Kind)
	}
	// One walk finds the groups that are within themselves, have many names, or lie too
	// deep for a record.
	root := newGroup("")
	nodes := map[string]*node{path: root}
	err = r.file.Walk(path, func(p string, e h5.Entry) error {
		parent := nodes[p[:len(p)-len(e.Name)-1]]
		n := &node{name: e.Name, kind: e.Kind}
		if e.Kind == h5.Group {
			n = newGroup(e.Name)
			nodes[p] = n
		}
		parent.add(n)
		return nil
	})
	if err != nil {
		return record.Record{}, err
	}
	return r.record(path, root, "")
}

// record reads a group as a record. An entry of a list of records has a name.
func (r *recordReader) record(path string, n *node, name string) (record.Record, error) {
	b := record.NewBuilder(record.AnyKeys())
	if name != "" && n.member("name") == nil {
		b.Text("name", name)
	}
	for _, m := range n.members {
		p := h5.Join(path, m.name)
		v, err := r.value(p, m)
		if r.drop != nil && r.drop(p, v, err) {
			continue
		}
		if err != nil {
			return record.Record{}, err
		}
		b.Set(m.name, v)
	}
	return r.build(path, b)
}

func (r *recordReader) build(path string, b *record.Builder) (record.Record, error) {
	built, err := b.Build()
	if err != nil {
		return built, ofFile(r.file.Name(), path, err)
	}
	return built, nil
}

func (r *recordReader) value(path string, n *node) (record.Value, error) {
	switch n.kind {
	case h5.Group:
		return r.group(path, n)
	case h5.Dataset:
		return r.dataset(path)
	}
	return record.Value{}, in(r.file.Name(), path, h5.ErrKind, "a %v can't be part of a record", n.kind)
}

func (r *recordReader) group(path string, n *node) (record.Value, error) {
	kind, err := r.kind(path)
	if err != nil {
		return record.Value{}, err
	}
	switch kind {
	case kindRecords:
		list, err := r.records(path, n)
		if err != nil {
			return record.Value{}, err
		}
		return r.valueOf(path, list)
	case kindArrays:
		list, err := r.arrays(path, n)
		if err != nil {
			return record.Value{}, err
		}
		return r.valueOf(path, list)
	case "":
		names, err := r.order(path, n)
		if err != nil {
			return record.Value{}, err
		}
		if names != nil {
			if r.lists == nil {
				r.lists = map[string]bool{}
			}
			r.lists[path] = true
			list := newGroup(n.name)
			for _, name := range names {
				list.add(n.member(name))
			}
			n = list
		}
	}
	rec, err := r.record(path, n, "")
	if err != nil {
		return record.Value{}, err
	}
	return r.valueOf(path, rec)
}

// kind gives the attribute of a group, "" where it has none, as in files of others.
func (r *recordReader) kind(path string) (string, error) {
	has, err := r.file.HasAttribute(path, kindAttribute)
	if err != nil || !has {
		return "", err
	}
	kind, err := r.file.AttributeString(path, kindAttribute)
	switch {
	case errors.Is(err, h5.ErrType):
		return "", nil // it is another attribute of that name
	case err != nil:
		return "", err
	case kind == kindRecord || kind == kindRecords || kind == kindArrays:
		return kind, nil
	}
	return "", nil
}

// order gives the names of a list of records in a group that doesn't say that it is
// one: there is an order, and it names all the other members, which are groups. Without
// one it gives nil.
func (r *recordReader) order(path string, n *node) ([]string, error) {
	o := n.member(orderName)
	if o == nil || o.kind != h5.Dataset {
		return nil, nil
	}
	names, err := r.texts(h5.Join(path, orderName))
	switch {
	case errors.Is(err, h5.ErrType), errors.Is(err, h5.ErrShape):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if len(names) != len(n.members)-1 {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if m := n.member(name); m == nil || m.kind != h5.Group || seen[name] {
			return nil, nil
		}
		seen[name] = true
	}
	return append([]string{}, names...), nil
}

func (r *recordReader) records(path string, n *node) ([]record.Record, error) {
	if n.member(orderName) == nil {
		return nil, in(r.file.Name(), path, ErrMismatch, "a list of records without the dataset %q", orderName)
	}
	names, err := r.texts(h5.Join(path, orderName))
	if err != nil {
		return nil, err
	}
	if len(names) != len(n.members)-1 {
		return nil, in(r.file.Name(), path, ErrMismatch, "%q names %d records of %d", orderName, len(names), len(n.members)-1)
	}
	list := make([]record.Record, len(names))
	for i, name := range names {
		m := n.member(name)
		if m == nil || m.kind != h5.Group {
			return nil, in(r.file.Name(), path, ErrMismatch, "%q names %q, which is no record there", orderName, name)
		}
		p := h5.Join(path, name)
		if list[i], err = r.record(p, m, name); err != nil {
			return nil, err
		}
		if own, err := list[i].Text("name"); err != nil || own != name {
			return nil, in(r.file.Name(), p, ErrMismatch, "the record has another name")
		}
	}
	return list, nil
}

func (r *recordReader) arrays(path string, n *node) ([]record.Array, error) {
	list := make([]record.Array, len(n.members))
	for i := range list {
		number := strconv.Itoa(i + 1)
		m := n.member(number)
		if m == nil || m.kind != h5.Dataset {
			return nil, in(r.file.Name(), path, ErrMismatch, "a list of %d arrays without dataset %q", len(list), number)
		}
		p := h5.Join(path, number)
		v, err := r.dataset(p)
		if err != nil {
			return nil, err
		}
		a, ok := v.Any().(record.Array)
		if !ok {
			return nil, in(r.file.Name(), p, ErrMismatch, "a %v in a list of arrays", v.Kind())
		}
		list[i] = a
	}
	return list, nil
}

// take counts bytes that are about to be read.
func (r *recordReader) take(path string, info h5.Info, size int) error {
	n := int64(info.Elements())
	if n > r.left/int64(max(size, 1)) {
		return in(r.file.Name(), path, h5.ErrTooLarge, "a record of more than %d bytes", int64(maxRecordBytes))
	}
	r.left -= n * int64(size)
	return nil
}

func (r *recordReader) texts(path string) ([]string, error) {
	info, err := r.file.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := r.take(path, info, info.Length+16); err != nil {
		return nil, err
	}
	return r.file.ReadStrings(path)
}

func (r *recordReader) valueOf(path string, v any) (record.Value, error) {
	value, err := record.ValueOf(v)
	if err != nil {
		return value, ofFile(r.file.Name(), path, err)
	}
	return value, nil
}

func (r *recordReader) dataset(path string) (record.Value, error) {
	info, err := r.file.Stat(path)
	if err != nil {
		return record.Value{}, err
	}
	if info.Type == h5.String {
		if len(info.Shape) > 0 {
			list, err := r.texts(path)
			if err != nil {
				return record.Value{}, err
			}
			return r.valueOf(path, list)
		}
		if err := r.take(path, info, info.Length+16); err != nil {
			return record.Value{}, err
		}
		s, err := r.file.ReadString(path)
		if err != nil {
			return record.Value{}, err
		}
		return r.valueOf(path, s)
	}
	if err := r.take(path, info, 8); err != nil {
		return record.Value{}, err
	}
	var v any
	switch info.Type {
	case h5.Bool:
		v, err = readBool(r.file, path)
	case h5.Int8:
		v, err = readNumbers[int8](r.file, path)
	case h5.Int16:
		v, err = readNumbers[int16](r.file, path)
	case h5.Int32:
		v, err = readNumbers[int32](r.file, path)
	case h5.Int64:
		v, err = readNumbers[int64](r.file, path)
	case h5.Uint8:
		v, err = readNumbers[uint8](r.file, path)
	case h5.Uint16:
		v, err = readNumbers[uint16](r.file, path)
	case h5.Uint32:
		v, err = readNumbers[uint32](r.file, path)
	case h5.Uint64:
		v, err = readNumbers[uint64](r.file, path)
	case h5.Float32:
		v, err = readNumbers[float32](r.file, path)
	case h5.Float64:
		v, err = readNumbers[float64](r.file, path)
	default:
		err = unreadable(r.file, path, info)
	}
	if err != nil {
		return record.Value{}, err
	}
	return r.valueOf(path, v)
}

// unreadable is the error of a dataset whose elements have no type of ours.
func unreadable(f *h5.File, path string, info h5.Info) error {
	return in(f.Name(), path, h5.ErrType, "elements of class %q and %d bytes can't be read", info.Class, info.ElementBytes())
}

// readNumbers reads a number or an array.
func readNumbers[T interface {
	h5.Element
	record.Element
}](f *h5.File, path string) (any, error) {
	data, shape, err := h5.Read[T](f, path)
	switch {
	case err != nil:
		return nil, err
	case len(shape) == 0 && len(data) == 1:
		return data[0], nil
	}
	a, err := record.NewArray(data, shape...)
	if err != nil {
		return nil, ofFile(f.Name(), path, err)
	}
	return a, nil
}

// readBool reads a boolean; a record has no arrays of them, so the bytes of others
// stay bytes.
func readBool(f *h5.File, path string) (any, error) {
	data, shape, err := h5.Read[bool](f, path)
	switch {
	case err != nil:
		return nil, err
	case len(shape) == 0 && len(data) == 1:
		return data[0], nil
	}
	a, err := record.NewArray(bytesOf(data), shape...)
	if err != nil {
		return nil, ofFile(f.Name(), path, err)
	}
	return a, nil
}

func bytesOf(bools []bool) []uint8 {
	bytes := make([]uint8, len(bools))
	for i, b := range bools {
		if b {
			bytes[i] = 1
		}
	}
	return bytes
}
