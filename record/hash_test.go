package record_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

const vectorsFile = "testdata/vectors.json"

type vector struct {
	Name           string
	Record         record.Record
	Encoding, Hash string
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestHashIsThatOfTheVectors(t *testing.T) {
	seen := map[string]string{}
	for _, v := range readVectors(t) {
		var encoding bytes.Buffer
		if err := v.Record.WriteCanonical(&encoding); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(encoding.Bytes()); got != v.Encoding {
			t.Errorf("%s: encoding\n%s, want\n%s", v.Name, got, v.Encoding)
		}
		if got := v.Record.Hash(); got != v.Hash {
			t.Errorf("%s: hash %s, want %s", v.Name, got, v.Hash)
		}
		if other, ok := seen[v.Hash]; ok {
			t.Errorf("%q and %q have the same hash", v.Name, other)
		}
		seen[v.Hash] = v.Name
	}
	if len(seen) < 50 {
		t.Errorf("only %d vectors", len(seen))
	}
}

func TestThePageGivesHashesOfVectors(t *testing.T) {
	page, err := os.ReadFile("../docs/record-hash.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range readVectors(t) {
		known[v.Hash] = true
	}
	hashes := regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(page), -1)
	if len(hashes) != 2 {
		t.Errorf("the page has %d hashes", len(hashes))
	}
	for _, hash := range hashes {
		if !known[hash] {
			t.Errorf("%s is that of no vector", hash)
		}
	}
}

// The script was written from the page alone, so the page is complete.
func TestHashIsThatOfAnotherImplementation(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := exec.LookPath(python); err != nil {
		t.Skipf("the second implementation needs %s; the vectors that it agreed with are checked without", python)
	}
	out, err := exec.Command(python, "testdata/hash.py", vectorsFile).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	// It does find a wrong hash and a wrong encoding.
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	bad := t.TempDir() + "/bad.json"
	if err := os.WriteFile(bad, bytes.Replace(data, []byte(`"k": true`), []byte(`"k": 1`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command(python, "testdata/hash.py", bad).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 2 {
		t.Errorf("changed vectors: error %v, output %q, want a failure of one encoding and one hash", err, out)
	}
}

func TestHashes(t *testing.T) {
	sections := mustOf(t,
		"solver", mustOf(t, "tolerance", 1e-6),
		"updates", []record.Record{mustOf(t, "name", "heating")},
		"code", "anything")
	hashes, err := record.Hashes(sections, "updates", "solver")
	if err != nil {
		t.Fatal(err)
	}
	want := mustOf(t,
		"solver", mustOf(t, "tolerance", 1e-6).Hash(),
		"updates", mustValue(t, []record.Record{mustOf(t, "name", "heating")}).Hash())
	if !hashes.Equal(want) {
		t.Errorf("hashes are\n%v, want\n%v", hashes, want)
	}

	_, err = record.Hashes(sections, "solver", "time")
	if !errors.Is(err, record.ErrMissing) || !strings.Contains(err.Error(), "time") {
		t.Errorf("a missing section: %v", err)
	}
	_, err = record.Hashes(sections, "solver", "solver")
	if !errors.Is(err, record.ErrDuplicate) {
		t.Errorf("a section twice: %v", err)
	}
}

func TestHashOfARecordIsThatOfItsValue(t *testing.T) {
	r := mustOf(t, "k", 1)
	if mustValue(t, r).Hash() != r.Hash() {
		t.Error("they differ")
	}
}

func TestHashOfLongContent(t *testing.T) {
	// More than the encoder buffers, with a change in each part.
	values := make([]float32, 5000)
	hashes := map[string]bool{mustOf(t, "k", values).Hash(): true}
	for _, i := range []int{0, 511, 512, 1023, 1024, 4999} {
		values[i] = 1
		hashes[mustOf(t, "k", values).Hash()] = true
		values[i] = 0
	}
	long := strings.Repeat("x", 10000)
	hashes[mustOf(t, "k", long).Hash()] = true
	hashes[mustOf(t, "k", long[1:]+"y").Hash()] = true
	if len(hashes) != 9 {
		t.Errorf("%d hashes of 9 records", len(hashes))
	}
}

func TestWritersSayWhatFailed(t *testing.T) {
	r := mustOf(t, "k", make([]float64, 5000))
	if err := r.WriteCanonical(fullWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("WriteCanonical: %v", err)
	}
	if err := r.WriteText(fullWriter{}, 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("WriteText: %v", err)
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func mustOf(t testing.TB, keysAndValues ...any) record.Record {
	t.Helper()
	r, err := record.Of(keysAndValues...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustValue(t testing.TB, v any) record.Value {
	t.Helper()
	value, err := record.ValueOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func mustArray[T record.Element](t testing.TB, values []T, dims ...int) record.Array {
	t.Helper()
	a, err := record.NewArray(values, dims...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
