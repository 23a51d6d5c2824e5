package publish

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fieldstone-io/fieldstone/grid"
)

// The bundles under testdata were written by a program that shares nothing with
// this one, its checksum included. They stay readable forever.

// checkField compares a field with a function of the global indices, bit for bit.
func checkField(t *testing.T, b *Bundle, id string, want func(i, j, k int) float64) {
	t.Helper()
	size := b.Metadata().Domain.Size
	cells := make([]float64, b.Metadata().Domain.Cells())
	if err := b.ReadField(id, cells); err != nil {
		t.Fatal(err)
	}
	for n, got := range cells {
		i, j, k := n%size[0], n/size[0]%size[1], n/size[0]/size[1]
		if w := want(i, j, k); math.Float64bits(got) != math.Float64bits(w) {
			t.Fatalf("field %q at %d, %d, %d is %v (%016x), want %v (%016x)",
				id, i, j, k, got, math.Float64bits(got), w, math.Float64bits(w))
		}
	}
}

// The conversions keep compilers from fusing a multiplication and an addition.
func count(i, j, k int) float64 { return float64(i + 100*j + 10000*k) }
func wave(i, j, k int) float64 {
	return float64(float64(0.1*float64(i))-float64(1e-3*float64(j))) + float64(7.25*float64(k))
}

func TestGoldenVersion1(t *testing.T) {
	b := openTestBundle(t, filepath.Join("testdata", "golden-v1"))
	want := Metadata{
		FormatVersion: 1, AcceptedTime: 12.375, AcceptedIncrement: 99, MethodIdentity: "etd1",
		Domain: grid.Domain{
			Size: [3]int{5, 4, 3}, Origin: [3]float64{-1.5, 0, 2.25}, Spacing: [3]float64{0.5, 0.1, 1. / 3},
			Periodic: [3]bool{true, true, true},
		},
		Decomposition: &Decomposition{2, [3]int{5, 4, 2}, [3]int{}},
		Fields:        []string{"psi", "temperature"},
	}
	if d := cmp.Diff(want, b.Metadata()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if b.HasChecksums() {
		t.Error("checksums from nowhere")
	}
	checkField(t, b, "psi", wave)
	checkField(t, b, "temperature", count)
	if err := b.Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

// TestGoldenVersion1WithAnEmptyList reads what a driver of version 1 publishes that
// doesn't say which fields it has.
func TestGoldenVersion1WithAnEmptyList(t *testing.T) {
	b := openTestBundle(t, filepath.Join("testdata", "golden-v1-empty-list"))
	if d := cmp.Diff([]string{"psi", "temperature"}, b.Fields()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	m := b.Metadata()
	if m.FormatVersion != 1 || m.AcceptedTime != 12.375 || m.AcceptedIncrement != 99 || b.Info().Unlisted != nil {
		t.Errorf("got %+v", b.Info())
	}
	checkField(t, b, "psi", wave)
	checkField(t, b, "temperature", count)
	if err := b.Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

func TestGoldenVersion2(t *testing.T) {
	dir := filepath.Join("testdata", "golden-v2")
	b, err := OpenBundle(dir, VerifyOnOpen(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	want := Metadata{
		FormatVersion: 2, AcceptedTime: 0.30000000000000004, AcceptedIncrement: 1<<53 + 1, ResultCounter: 12, MethodIdentity: "euler é",
		Domain: grid.Domain{
			Size: [3]int{5, 4, 3}, Origin: [3]float64{-1.5, math.Copysign(0, -1), 1e-7}, Spacing: [3]float64{0.5, 0.1, 1. / 3},
			Periodic: [3]bool{true, false, true},
		},
		Decomposition: &Decomposition{2, [3]int{5, 4, 2}, [3]int{}},
		Fields:        []string{"phi", "heat flux µ"},
		BoundaryConditions: []BoundaryRecord{
			{Config: json.RawMessage(`{"type":"fixed","axis":"y","side":"low","value":1}`)},
			{
				Config: json.RawMessage(`{"type":"moving","level":0.5,"start":0,"distance":1,"width":2,"value":-1}`),
				State:  json.RawMessage(`{"xpos":3.25,"idx":9,"first":false}`),
			},
		},
		Writer: &Writer{Version: "v0.1.0", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	if d := cmp.Diff(want, b.Metadata()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	text, err := os.ReadFile(filepath.Join(dir, metadataFile))
	if err != nil {
		t.Fatal(err)
	}
	// So the zeros have the same signs too.
	again, err := EncodeMetadata(b.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), string(again)); d != "" {
		t.Errorf("written again, -want +got:\n%s", d)
	}
	if s, ok := b.Sidecar(); !ok || !json.Valid(s) {
		t.Errorf("sidecar %s", s)
	}
	special := []uint64{1 << 63, 0x7ff << 52, 0xfff << 52, 0x7ff8000000000abc, 0xfff4000000000001, 1}
	checkField(t, b, "phi", func(i, j, k int) float64 {
		if n := i + 5*(j+4*k) - 10; 0 <= n && n < len(special) {
			return math.Float64frombits(special[n])
		}
		return wave(i, j, k)
	})
	checkField(t, b, "heat flux µ", count)
}

// TestOpenPFCBundle reads a bundle of the reference writer where there is one
// beside the checkout; the golden bundle of version 1 is of the same shape.
func TestOpenPFCBundle(t *testing.T) {
	dir := filepath.Join("..", "..", "shared", "cases", "openpfc-v1-bundle")
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		dir = filepath.Join("testdata", "golden-v1")
	}
	b := openTestBundle(t, dir)
	m := b.Metadata()
	if m.AcceptedTime != 12.375 || m.AcceptedIncrement != 99 || m.MethodIdentity != "etd1" || m.Domain.Periodic != [3]bool{true, true, true} || m.ResultCounter != 0 {
		t.Errorf("metadata %+v", m)
	}
	if d := cmp.Diff([]string{"psi", "temperature"}, b.Fields()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	checkField(t, b, "temperature", count)
	if m.Domain.Size == [3]int{10, 6, 7} {
		// sin(0.1 i), rounded correctly, as the C library does and Go does not.
		sin := [10]float64{0.0, 0.09983341664682815, 0.19866933079506122, 0.2955202066613396, 0.3894183423086505, 0.479425538604203, 0.5646424733950355, 0.6442176872376911, 0.7173560908995228, 0.7833269096274834}
		checkField(t, b, "psi", func(i, j, k int) float64 {
			return float64(sin[i]+float64(1e-3*float64(j))) - float64(7.25*float64(k))
		})
	}
}
