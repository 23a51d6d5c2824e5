package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
)

const (
	// formatVersion is the version that is written. Read are 1 and 2.
	formatVersion = 2

	// maxMetadataBytes bounds what is read as metadata.json.
	maxMetadataBytes = 16 << 20

	// maxFields bounds the fields of a bundle, and maxMetadataStrings the keys and strings
	// of metadata.json, which take longer to read than anything else in it: far above what
	// a bundle of so many fields has.
	maxFields          = 1 << 15
	maxMetadataStrings = 1 << 17

	// maxSidecarBytes bounds what is read as sidecar.json.
	maxSidecarBytes = 256 << 20
)

// Metadata is the content of a bundle's metadata.json: what a restart has to
// know besides the fields.
type Metadata struct {
	// FormatVersion is 1 or 2. Writers may leave it 0, which means
	// the current one, 2.
	FormatVersion int
	// AcceptedTime and AcceptedIncrement are the clock of the saved state. The
	// time is finite, the increment at least 0.
	AcceptedTime      float64
	AcceptedIncrement int64
	// ResultCounter counts the results written so far, at least 0.
	ResultCounter int64
	// Domain is the global grid. Of version 1 it is periodic along all axes.
	Domain grid.Domain
	// Decomposition records the layout of the writer, nil if it isn't known. It
	// is never a condition of reading.
	Decomposition *Decomposition
	// MethodIdentity names the integrator. It may be empty.
	MethodIdentity string
	// Fields are the ids of the fields, in order. Nil only in what
	// [ParseMetadata] returns for a version 1 that has no list, or an empty one.
	Fields []string
	// BoundaryConditions are the boundary conditions in the order of their
	// application. Nil means that the bundle says nothing about them.
	BoundaryConditions []BoundaryRecord
	// Writer tells who wrote the bundle, nil if it isn't known.
	Writer *Writer
}

// Decomposition is the layout of the ranks that wrote a bundle.
type Decomposition struct {
	// MPISize is the number of ranks.
	MPISize int
	// LocalSize and LocalOffset are the owned box of rank 0 in cells, in the
	// order x, y, z.
	LocalSize, LocalOffset [3]int
}

// BoundaryRecord is a boundary condition as a bundle keeps it.
type BoundaryRecord struct {
	// Config is the condition's own configuration, a JSON text without white
	// space.
	Config json.RawMessage
	// State is its state, likewise; nil for a condition without.
	State json.RawMessage
}

// Writer tells who wrote a bundle.
type Writer struct {
	// Version is the version of Fieldstone, Created the time of the writing.
	// Each may be zero.
	Version string
	Created time.Time
	// NonFinite has the number of cells that are NaN or infinite, by the ids of fields.
	// Fields that aren't in it have none. Nil means that nobody has counted.
	NonFinite map[string]int64
}

// MetadataError tells which key of metadata is wrong, and why. It matches
// [ErrMetadata], or [ErrVersion] if the only fault is a format version that
// isn't known.
type MetadataError struct {
	// Key is the path to the value, for example "domain.grid_spacing[2]". It is
	// empty if the text as a whole is wrong.
	Key string
	// Reason says what is wrong.
	Reason string

	version bool
}

func (e *MetadataError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}

// Is makes the error match its sentinel.
func (e *MetadataError) Is(target error) bool {
	if e.version {
		return target == ErrVersion
	}
	return target == ErrMetadata
}

func badKey(key, format string, args ...any) error {
	return &MetadataError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

const (
	keyVersion    = "format_version"
	keyTime       = "accepted_time"
	keyIncrement  = "accepted_increment"
	keyCounter    = "result_counter"
	keyMethod     = "method_identity"
	keyDomain     = "domain"
	keySize       = "global_dimensions"
	keyOrigin     = "physical_origin"
	keySpacing    = "grid_spacing"
	keyPeriodic   = "periodic"
	keyDecomp     = "decomposition"
	keyMPISize    = "mpi_size"
	keyLocalSize  = "local_size"
	keyOffset     = "local_offset"
	keyFields     = "fields"
	keyBoundaries = "boundary_conditions"
	keyConfig     = "config"
	keyState      = "state"
	keyWriter     = "fieldstone"
	keyRelease    = "version"
	keyCreated    = "created"
	keyNonFinite  = "non_finite"
)

// Validate reports whether m can be the metadata of a bundle. The error is a
// [*MetadataError] for the first key that is wrong.
func (m Metadata) Validate() error {
	switch m.FormatVersion {
	case 0, 1, formatVersion:
	default:
		return unknownVersion(int64(m.FormatVersion))
	}
	if !nonfinite.Finite(m.AcceptedTime) {
		return badKey(keyTime, "%v is not finite", m.AcceptedTime)
	}
	if m.AcceptedIncrement < 0 {
		return badKey(keyIncrement, "%d is negative", m.AcceptedIncrement)
	}
	if m.ResultCounter < 0 {
		return badKey(keyCounter, "%d is negative", m.ResultCounter)
	}
	if err := m.checkDomain(); err != nil {
		return err
	}
	if !utf8.ValidString(m.MethodIdentity) {
		return badKey(keyMethod, "%q is not valid UTF-8", shorten(m.MethodIdentity))
	}
	if n := len(m.Fields); n > maxFields {
		return badKey(keyFields, "%d fields, at most %d are read", n, maxFields)
	}
	if i, err := checkIDs(m.Fields); err != nil {
		return badKey(fmt.Sprintf("%s[%d]", keyFields, i), "%v", err)
	}
	for i, r := range m.BoundaryConditions {
		key := fmt.Sprintf("%s[%d].", keyBoundaries, i)
		if len(r.Config) == 0 {
			return badKey(key+keyConfig, "missing")
		}
		if err := strictjson.Check(r.Config); err != nil {
			return badKey(key+keyConfig, "%v", err)
		}
		if len(r.State) == 0 {
			continue
		}
		if err := strictjson.Check(r.State); err != nil {
			return badKey(key+keyState, "%v", err)
		}
	}
	if w := m.Writer; w != nil {
		if !utf8.ValidString(w.Version) {
			return badKey(keyWriter+"."+keyRelease, "%q is not valid UTF-8", shorten(w.Version))
		}
		if y := w.Created.UTC().Year(); y < 1 || y > 9999 {
			return badKey(keyWriter+"."+keyCreated, "the year %d can't be written", y)
		}
		if err := m.checkNonFinite(w.NonFinite); err != nil {
			return err
		}
	}
	return nil
}

func (m Metadata) checkNonFinite(counts map[string]int64) error {
	if len(counts) == 0 {
		return nil
	}
	fields := make(map[string]bool, len(m.Fields))
	for _, id := range m.Fields {
		fields[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		key := strictjson.Join(keyWriter+"."+keyNonFinite, id)
		// Those of a version 1 may not be known yet.
		if !fields[id] && m.FormatVersion != 1 {
			return badKey(key, "is not one of the fields")
		}
		if n := counts[id]; n < 0 || n > m.Domain.Cells() {
			return badKey(key, "%d is not a number of cells of %d", n, m.Domain.Cells())
		}
	}
	return nil
}

func (m Metadata) checkDomain() error {
	d := m.Domain
	for a, n := range d.Size {
		if n <= 0 {
			return badKey(fmt.Sprintf("%s.%s[%d]", keyDomain, keySize, a), "%d, must be greater than 0", n)
		}
	}
	for a, v := range d.Origin {
		if !nonfinite.Finite(v) {
			return badKey(fmt.Sprintf("%s.%s[%d]", keyDomain, keyOrigin, a), "%v is not finite", v)
		}
	}
	for a, v := range d.Spacing {
		if !nonfinite.Finite(v) || v <= 0 {
			return badKey(fmt.Sprintf("%s.%s[%d]", keyDomain, keySpacing, a), "%v, must be finite and greater than 0", v)
		}
	}
	// What is left is the product of the dimensions.
	if err := d.Validate(); err != nil {
		return badKey(keyDomain+"."+keySize, "%v", err)
	}
	if m.FormatVersion == 1 && d.Periodic != [3]bool{true, true, true} {
		return badKey(keyDomain+"."+keyPeriodic, "format version 1 can't express a bounded axis, got %v", d.Periodic)
	}
	return nil
}

func unknownVersion(v int64) error {
	return &MetadataError{
		Key:     keyVersion,
		Reason:  fmt.Sprintf("%d is not supported (this reader knows 1 and %d)", v, formatVersion),
		version: true,
	}
}

// EncodeMetadata returns the content of metadata.json for m, of the current
// format version. The text is deterministic: keys in a fixed order, floats in
// their shortest form that parses back to the same bits. What it returns,
// [ParseMetadata] reads as the same metadata.
func EncodeMetadata(m Metadata) ([]byte, error) {
	if m.FormatVersion == 0 {
		m.FormatVersion = formatVersion
	}
	if m.FormatVersion != formatVersion {
		return nil, badKey(keyVersion, "%d is not written, only %d", m.FormatVersion, formatVersion)
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(data) > maxMetadataBytes {
		return nil, badKey("", "%d bytes of metadata, at most %d are read", len(data), maxMetadataBytes)
	}
	// Nothing may be published that can't be read. This covers what only shows
	// in the whole: the depth of a configuration inside of it.
	if len(m.BoundaryConditions) > 0 {
		if _, err := ParseMetadata(data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// MarshalJSON returns m in the form of metadata.json. Unlike [EncodeMetadata] it
// keeps the format version 1 of metadata that were read.
func (m Metadata) MarshalJSON() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.FormatVersion == 0 {
		m.FormatVersion = formatVersion
	}
	var e metadataEncoder
	e.open("{")
	e.key(keyVersion).int(int64(m.FormatVersion))
	e.key(keyTime).float(m.AcceptedTime)
	e.key(keyIncrement).int(m.AcceptedIncrement)
	e.key(keyCounter).int(m.ResultCounter)
	e.key(keyMethod).string(m.MethodIdentity)
	e.key(keyDomain).open("{")
	e.key(keySize).ints(m.Domain.Size)
	e.key(keyOrigin).floats(m.Domain.Origin)
	e.key(keySpacing).floats(m.Domain.Spacing)
	e.key(keyPeriodic).bools(m.Domain.Periodic)
	e.close("}")
	if d := m.Decomposition; d != nil {
		e.key(keyDecomp).open("{")
		e.key(keyMPISize).int(int64(d.MPISize))
		e.key(keyLocalSize).ints(d.LocalSize)
		e.key(keyOffset).ints(d.LocalOffset)
		e.close("}")
	}
	e.key(keyFields).open("[")
	for _, id := range m.Fields {
		e.element().string(id)
	}
	e.close("]")
	if m.BoundaryConditions != nil {
		e.key(keyBoundaries).open("[")
		for _, r := range m.BoundaryConditions {
			e.element().open("{")
			e.key(keyConfig).raw(r.Config)
			e.key(keyState).raw(r.State)
			e.close("}")
		}
		e.close("]")
	}
	if w := m.Writer; w != nil {
		e.key(keyWriter).open("{")
		e.key(keyRelease).string(w.Version)
		if !w.Created.IsZero() {
			e.key(keyCreated).string(w.Created.UTC().Format(time.RFC3339Nano))
		}
		if w.NonFinite != nil {
			e.key(keyNonFinite).open("{")
			for _, id := range slices.Sorted(maps.Keys(w.NonFinite)) {
				e.key(id).int(w.NonFinite[id])
			}
			e.close("}")
		}
		e.close("}")
	}
	e.close("}")
	e.b.WriteByte('\n')
	return e.b.Bytes(), nil
}

// metadataEncoder writes indented JSON.
type metadataEncoder struct {
	b     bytes.Buffer
	depth int
	some  bool // the array or object has an element already
}

func (e *metadataEncoder) line() {
	e.b.WriteByte('\n')
	for range e.depth {
		e.b.WriteString("  ")
	}
}

func (e *metadataEncoder) open(bracket string) {
	e.b.WriteString(bracket)
	e.depth++
	e.some = false
}

func (e *metadataEncoder) close(bracket string) {
	e.depth--
	if e.some {
		e.line()
	}
	e.b.WriteString(bracket)
	e.some = true
}

func (e *metadataEncoder) element() *metadataEncoder {
	if e.some {
		e.b.WriteByte(',')
	}
	e.line()
	e.some = true
	return e
}

func (e *metadataEncoder) key(k string) *metadataEncoder {
	e.element().string(k)
	e.b.WriteString(": ")
	return e
}

func (e *metadataEncoder) int(n int64) { e.b.WriteString(strconv.FormatInt(n, 10)) }

func (e *metadataEncoder) float(v float64) { e.b.WriteString(formatFloat(v)) }

// formatFloat returns the shortest decimal that parses back to v, with a point
// or an exponent, so that it is a float to readers who tell them from integers.
func formatFloat(v float64) string {
	form := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	s := strconv.FormatFloat(v, form, -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func (e *metadataEncoder) ints(v [3]int) { fmt.Fprintf(&e.b, "[%d, %d, %d]", v[0], v[1], v[2]) }

func (e *metadataEncoder) floats(v [3]float64) {
	fmt.Fprintf(&e.b, "[%s, %s, %s]", formatFloat(v[0]), formatFloat(v[1]), formatFloat(v[2]))
}

func (e *metadataEncoder) bools(v [3]bool) { fmt.Fprintf(&e.b, "[%t, %t, %t]", v[0], v[1], v[2]) }

// string writes s, which is valid UTF-8.
func (e *metadataEncoder) string(s string) {
	e.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.b.WriteByte('\\')
			e.b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&e.b, `\u%04x`, r)
		default:
			e.b.WriteRune(r)
		}
	}
	e.b.WriteByte('"')
}

// raw writes a JSON text that strictjson.Check has accepted, null for an empty one.
func (e *metadataEncoder) raw(m json.RawMessage) {
	if len(m) == 0 {
		e.b.WriteString("null")
		return
	}
	e.b.Write(strictjson.Compact(m))
}

// UnmarshalJSON is [ParseMetadata].
func (m *Metadata) UnmarshalJSON(data []byte) error {
	parsed, err := ParseMetadata(data)
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// ParseMetadata reads the content of a metadata.json of format version 1 or 2.
// It is strict where readers could differ: keys given twice, invalid UTF-8, a
// byte-order mark, text after the end, and values that don't fit their type are
// refused. Integers may be in any notation of an integer that fits into 64 bits
// (40, 40.0, 4e1). Unknown keys are ignored. The error is a [*MetadataError].
//
// An optional key that is null counts as missing. A version 1 reads as periodic along
// all axes. Its list of fields may be missing or empty; Fields is then nil, and
// [ReadMetadata] fills it from the directory.
func ParseMetadata(data []byte) (Metadata, error) {
	m, err := parseMetadata(data)
	var f *strictjson.Error
	if errors.As(err, &f) {
		err = &MetadataError{Key: f.Path, Reason: f.Reason}
	}
	if err != nil {
		return Metadata{}, err
	}
	return m, nil
}

func parseMetadata(data []byte) (Metadata, error) {
	var m Metadata
	if len(data) > maxMetadataBytes {
		return m, badKey("", "%d bytes of metadata, at most %d are read", len(data), maxMetadataBytes)
	}
	root, err := parseObject(data, maxMetadataStrings)
	if err != nil {
		return m, err
	}

	// The version decides what the other keys mean, so it comes first.
	version, err := root.need(keyVersion)
	if err != nil {
		return m, err
	}
	n, err := version.Int()
	if err != nil {
		return m, err
	}
	if n != 1 && n != formatVersion {
		return m, unknownVersion(n)
	}
	m.FormatVersion = int(n)

	var d metadataDecoder
	m.AcceptedTime = d.float(root.need(keyTime))
	m.AcceptedIncrement = d.int(root.need(keyIncrement))
	if v, ok := root.optional(keyCounter); ok {
		m.ResultCounter = d.int(v, nil)
	}
	m.MethodIdentity = d.string(root.need(keyMethod))
	domain := d.object(root.need(keyDomain))
	if d.err != nil {
		return m, d.err
	}
	m.Domain.Size = d.sizes(domain.need(keySize))
	m.Domain.Origin = d.floats(domain.need(keyOrigin))
	m.Domain.Spacing = d.floats(domain.need(keySpacing))
	m.Domain.Periodic = [3]bool{true, true, true}
	if v, ok := domain.inVersion2(keyPeriodic, m.FormatVersion); ok {
		m.Domain.Periodic = d.bools(v, nil)
	} else if m.FormatVersion > 1 {
		return m, badKey(keyDomain+"."+keyPeriodic, "missing (required in format version %d)", m.FormatVersion)
	}
	if v, ok := root.optional(keyDecomp); ok {
		m.Decomposition = d.decomposition(v)
	}
	if v, ok := root.inVersion2(keyFields, m.FormatVersion); ok {
		m.Fields = d.strings(v)
		if m.FormatVersion == 1 && len(m.Fields) == 0 {
			m.Fields = nil // a driver that set no list: the directory is the list
		}
	} else if m.FormatVersion > 1 {
		return m, badKey(keyFields, "missing (required in format version %d)", m.FormatVersion)
	}
	if v, ok := root.optional(keyBoundaries); ok {
		m.BoundaryConditions = d.boundaries(v)
	}
	if v, ok := root.optional(keyWriter); ok {
		m.Writer = d.writer(v)
	}
	if d.err != nil {
		return m, d.err
	}
	return m, m.Validate()
}

// jsonObject is a value with its members.
type jsonObject struct {
	strictjson.Value
	members map[string]strictjson.Value
}

// parseObject reads a text with at most so many keys and strings; 0 stands for any number.
func parseObject(text []byte, most int) (jsonObject, error) {
	v, err := strictjson.Parse(text, most)
	if err != nil {
		return jsonObject{}, err
	}
	return openObject(v)
}

func openObject(v strictjson.Value) (jsonObject, error) {
	members, err := v.Members()
	return jsonObject{v, members}, err
}

func (o jsonObject) need(key string) (strictjson.Value, error) {
	v, ok := o.members[key]
	if !ok {
		return strictjson.Value{}, badKey(strictjson.Join(o.Path, key), "missing")
	}
	return v, nil
}

// optional returns the value of a key that may be missing, or null, which says the
// same.
func (o jsonObject) optional(key string) (strictjson.Value, bool) {
	v, ok := o.members[key]
	return v, ok && !v.Null()
}

// inVersion2 returns the value of a key that is optional in version 1 only.
func (o jsonObject) inVersion2(key string, version int) (strictjson.Value, bool) {
	if version == 1 {
		return o.optional(key)
	}
	v, ok := o.members[key]
	return v, ok
}

// metadataDecoder keeps the first error of a sequence of values.
type metadataDecoder struct{ err error }

// decode applies f unless there was an error before.
func decode[T any](d *metadataDecoder, v strictjson.Value, err error, f func(strictjson.Value) (T, error)) T {
	var zero T
	if d.err == nil {
		d.err = err
	}
	if d.err != nil {
		return zero
	}
	t, err := f(v)
	if err != nil {
		d.err = err
		return zero
	}
	return t
}

func (d *metadataDecoder) float(v strictjson.Value, err error) float64 {
	return decode(d, v, err, strictjson.Value.Float)
}
func (d *metadataDecoder) int(v strictjson.Value, err error) int64 {
	return decode(d, v, err, strictjson.Value.Int)
}
func (d *metadataDecoder) size(v strictjson.Value, err error) int {
	return decode(d, v, err, strictjson.Value.Size)
}
func (d *metadataDecoder) string(v strictjson.Value, err error) string {
	return decode(d, v, err, strictjson.Value.String)
}

func (d *metadataDecoder) bool(v strictjson.Value, err error) bool {
	return decode(d, v, err, strictjson.Value.Bool)
}

func (d *metadataDecoder) object(v strictjson.Value, err error) jsonObject {
	return decode(d, v, err, openObject)
}

// triple decodes an array of exactly three elements.
func triple[T any](d *metadataDecoder, v strictjson.Value, err error, what string, f func(strictjson.Value) (T, error)) [3]T {
	return decode(d, v, err, func(v strictjson.Value) (t [3]T, err error) {
		elements, err := v.Elements("an array of 3 " + what)
		if err != nil {
			return t, err
		}
		if len(elements) != len(t) {
			return t, v.Fault("want 3 %s, got %d", what, len(elements))
		}
		for i := range t {
			if t[i], err = f(elements[i]); err != nil {
				return t, err
			}
		}
		return t, nil
	})
}

func (d *metadataDecoder) sizes(v strictjson.Value, err error) [3]int {
	return triple(d, v, err, "integers", strictjson.Value.Size)
}

func (d *metadataDecoder) floats(v strictjson.Value, err error) [3]float64 {
	return triple(d, v, err, "numbers", strictjson.Value.Float)
}

func (d *metadataDecoder) bools(v strictjson.Value, err error) [3]bool {
	return triple(d, v, err, "booleans", strictjson.Value.Bool)
}

func (d *metadataDecoder) strings(v strictjson.Value) []string {
	return decode(d, v, nil, func(v strictjson.Value) ([]string, error) {
		elements, err := v.Elements("an array of strings")
		if err != nil {
			return nil, err
		}
		list := make([]string, len(elements))
		for i := range elements {
			if list[i], err = elements[i].String(); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
}

func (d *metadataDecoder) decomposition(v strictjson.Value) *Decomposition {
	o := d.object(v, nil)
	if d.err != nil {
		return nil
	}
	return &Decomposition{
		MPISize:     d.size(o.need(keyMPISize)),
		LocalSize:   d.sizes(o.need(keyLocalSize)),
		LocalOffset: d.sizes(o.need(keyOffset)),
	}
}

func (d *metadataDecoder) boundaries(v strictjson.Value) []BoundaryRecord {
	return decode(d, v, nil, func(v strictjson.Value) ([]BoundaryRecord, error) {
		elements, err := v.Elements("an array")
		if err != nil {
			return nil, err
		}
		records := make([]BoundaryRecord, len(elements))
		for i, e := range elements {
			o, err := openObject(e)
			if err != nil {
				return nil, err
			}
			config, err := o.need(keyConfig)
			if err != nil {
				return nil, err
			}
			records[i].Config = strictjson.Compact(config.Raw)
			if state, ok := o.optional(keyState); ok {
				records[i].State = strictjson.Compact(state.Raw)
			}
		}
		return records, nil
	})
}

func (d *metadataDecoder) writer(v strictjson.Value) *Writer {
	o := d.object(v, nil)
	if d.err != nil {
		return nil
	}
	w := &Writer{}
	if v, ok := o.optional(keyRelease); ok {
		w.Version = d.string(v, nil)
	}
	if v, ok := o.optional(keyCreated); ok {
		w.Created = decode(d, v, nil, func(v strictjson.Value) (time.Time, error) {
			s, err := v.String()
			if err != nil {
				return time.Time{}, err
			}
			t, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				return time.Time{}, v.Fault("%q is not a time by RFC 3339", shorten(s))
			}
			return t.UTC(), nil
		})
	}
	if v, ok := o.optional(keyNonFinite); ok {
		counts := d.object(v, nil)
		if d.err != nil {
			return nil
		}
		w.NonFinite = make(map[string]int64, len(counts.members))
		for _, id := range slices.Sorted(maps.Keys(counts.members)) {
			w.NonFinite[id] = d.int(counts.members[id], nil)
		}
	}
	return w
}
