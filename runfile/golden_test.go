package runfile

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// goldenSums are of the files in testdata/golden. A new format adds files; those of
// older ones are never made anew.
var goldenSums = map[string]string{
	"checkpoint.0.0.1.h5":           "7a9cbcb27da71a746832c5b6c70117bfd8af499655a3cbf9f1fd33156ba62d65",
	"checkpoint.0.0.2.h5":           "c101af1ba0566feee9128eaa23b404c1d832c3f7236bb73f777a2346f5aec2c7",
	"checkpoint.0.0.3.h5":           "8ab5df57f1e3a5fdf2901e81a1ee8008f8bcfda69e3958465bdeb291fa14f760",
	"checkpoint.0.0.4.h5":           "e6556615aed495065516bbd8e1c9a136d3cec38c6dd4d150c3ea3ff208893f94",
	"checkpoint.0.0.5.h5":           "c73144a2e172604531140579b70ad29835a720a3ec08779dc523cf18d83809b3",
	"foreign-checkpoint.0.0.5.h5":   "e2a7dd20faf3ef46387f26dc5a1a66d4582859a799d9c2d1a2473e7ee8c02a56",
	"foreign-output.0.0.5.h5":       "72f4572547818f7f1b8daeb776e4fa0a2ef6d59613f5545c7255c1dedeafd7b9",
	"ours-checkpoint.0.0.5.h5":      "d2b4f4d45902689e7804b613cce1413903065517b01621d8096d88f6a3acdfc1",
	"ours-output.0.0.5.h5":          "f872cc8621ba648f0da66db763341d9ac16424d1b268b3a9368706c0b50432f8",
	"output.0.0.1.h5":               "05924e009b0d4c4c66e05130a1dd92f491dff4147c196b593c55d62d9367ef23",
	"output.0.0.2.h5":               "72700441b46b21276519af3416c50f01f56d9b9f6d791e3c22d6a99c5d470884",
	"output.0.0.3.h5":               "90cb0c1db698450346ac02394875be2c8bc8e4f043de5670583b9ae6b4f9436e",
	"output.0.0.4.h5":               "04df00c6f4482869ba3f425eba422bae19bed958ac9b1ce2a1ac5e39b013efb8",
	"output.0.0.5.h5":               "01b089ff85a103e2ce8307ede1ff6978fdadd06fb54abff6a6098db9b9146506",
	"ours-checkpoint-sums.0.0.5.h5": "8197df0f8af142e8161325e75b6fff18fa56ece171db4db8589d6bb7c62f02e8",
	"ours-output-sums.0.0.5.h5":     "a7859090c47ef00aa245afcf9d9bc683338c811c244acae1d5155cbae329dd63",
}

func TestGoldenFilesStayAsTheyAre(t *testing.T) {
	const dir = "testdata/golden"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Name()] = true
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		switch want, ok := goldenSums[e.Name()]; {
		case !ok:
			t.Errorf("%s has no sum here", e.Name())
		case fmt.Sprintf("%x", sha256.Sum256(content)) != want:
			t.Errorf("%s has changed", e.Name())
		}
	}
	for name := range goldenSums {
		if !found[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
