package publish

import (
	"path/filepath"
	"strings"
	"testing"
)

// What C's printf makes of each template with the increments 0, 7 and 12345.
func TestDumpsAreNamedAsPrintfNamesThem(t *testing.T) {
	for template, want := range map[string][3]string{
		"psi_%d.bin":        {"psi_0.bin", "psi_7.bin", "psi_12345.bin"},
		"psi_%04d.bin":      {"psi_0000.bin", "psi_0007.bin", "psi_12345.bin"},
		"psi_%5d.bin":       {"psi_    0.bin", "psi_    7.bin", "psi_12345.bin"},
		"psi_%-6d.bin":      {"psi_0     .bin", "psi_7     .bin", "psi_12345 .bin"},
		"psi_%+d.bin":       {"psi_+0.bin", "psi_+7.bin", "psi_+12345.bin"},
		"psi_% d.bin":       {"psi_ 0.bin", "psi_ 7.bin", "psi_ 12345.bin"},
		"psi_% 5d.bin":      {"psi_    0.bin", "psi_    7.bin", "psi_ 12345.bin"},
		"psi_%+06d.bin":     {"psi_+00000.bin", "psi_+00007.bin", "psi_+12345.bin"},
		"psi_%-06d.bin":     {"psi_0     .bin", "psi_7     .bin", "psi_12345 .bin"},
		"psi_% +d.bin":      {"psi_+0.bin", "psi_+7.bin", "psi_+12345.bin"},
		"psi_%0d.bin":       {"psi_0.bin", "psi_7.bin", "psi_12345.bin"},
		"psi_%.3d.bin":      {"psi_000.bin", "psi_007.bin", "psi_12345.bin"},
		"psi_%06.3d.bin":    {"psi_   000.bin", "psi_   007.bin", "psi_ 12345.bin"},
		"psi_%.d.bin":       {"psi_.bin", "psi_7.bin", "psi_12345.bin"},
		"psi_%i.bin":        {"psi_0.bin", "psi_7.bin", "psi_12345.bin"},
		"psi_%+4u.bin":      {"psi_   0.bin", "psi_   7.bin", "psi_12345.bin"},
		"psi.bin":           {"psi.bin", "psi.bin", "psi.bin"},
		"100%%/psi_%d.bin":  {"100%/psi_0.bin", "100%/psi_7.bin", "100%/psi_12345.bin"},
		"100%/psi_%d.bin":   {"100%/psi_0.bin", "100%/psi_7.bin", "100%/psi_12345.bin"},
		"5%_a/5%5_/%d%%":    {"5%_a/5%5_/0%", "5%_a/5%5_/7%", "5%_a/5%5_/12345%"},
		"100%%.bin":         {"100%.bin", "100%.bin", "100%.bin"},
		"run_%03d/psi.bin":  {"run_000/psi.bin", "run_007/psi.bin", "run_12345/psi.bin"},
		"%s_%d.bin":         {"Φ_0.bin", "Φ_7.bin", "Φ_12345.bin"},
		"%04d/%s.bin":       {"0000/Φ.bin", "0007/Φ.bin", "12345/Φ.bin"},
		"%%d %%s %% %d.bin": {"%d %s % 0.bin", "%d %s % 7.bin", "%d %s % 12345.bin"},
	} {
		parsed, err := parseTemplate("/a/" + template)
		if err != nil {
			t.Errorf("%q: %v", template, err)
			continue
		}
		for i, n := range []int64{0, 7, 12345} {
			if got := parsed.path(n, "Φ"); got != "/a/"+want[i] {
				t.Errorf("%q with %d: %q, want %q", template, n, got, want[i])
			}
		}
	}
}

func TestTheSeriesIsNamedAsTheDumpsWithoutTheirNumber(t *testing.T) {
	one, two := []string{"psi"}, []string{"psi", "T"}
	for _, c := range []struct {
		template string
		ids      []string
		want     string
	}{
		{"psi_%04d.bin", one, "psi.xmf"},
		{"a/b/psi-%d.raw", one, "a/b/psi.xmf"},
		{"%06d.bin", one, "series.xmf"},
		{"psi%012d", one, "psi.xmf"},
		{"u.%04d.real.bin", one, "u.real.xmf"},
		{"spaces in_%d.bin", one, "spaces in.xmf"},
		{"größe_%d.bin", one, "größe.xmf"},
		{"psi_%-6d.bin", one, "psi.xmf"},
		{"out/psi.bin", one, "out/psi.xmf"},
		{"out/psi", one, "out/psi.xmf"},
		{"a%%b/psi_%%_%d.bin", one, "a%b/psi_%.xmf"},
		{"%s_%04d.bin", one, "psi.xmf"},
		{"%s_%04d.bin", two, "series.xmf"},
		{"out/run_%s_%04d.bin", one, "out/run_psi.xmf"},
		{"out/run_%s_%04d.bin", two, "out/run.xmf"},
		{"out/%s.bin", two, "out/series.xmf"},
		{"out_%04d/psi.bin", one, "out_psi.xmf"},
		{"all/%04d/%s.bin", two, "all/series.xmf"},
		{"all/%04d/%s.bin", one, "all/psi.xmf"},
		{"all/%s/t%04d.bin", one, "all/psi/t.xmf"},
		{"all/%s/t%04d.bin", two, "all/t.xmf"},
	} {
		for _, root := range []string{"/", "/data/"} {
			parsed, err := parseTemplate(root + c.template)
			if err == nil {
				err = parsed.check(c.ids)
			}
			if got := parsed.series(c.ids); err != nil || got != root+c.want {
				t.Errorf("%q of %q: %q, %v: want %q", root+c.template, c.ids, got, err, root+c.want)
			}
		}
	}
}

func TestARelativeTemplateIsOneFromTheWorkingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "50%d off")
	t.Chdir(filepath.Dir(dir))
	parsed, err := parseTemplate("50%%d off/psi_%d.bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if got, want := parsed.path(3, "psi"), filepath.Join(dir, "psi_3.bin"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := parsed.series([]string{"psi"}), filepath.Join(dir, "psi.xmf"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	one, two := []string{"psi"}, []string{"psi", "T"}
	for _, c := range []struct {
		template string
		ids      []string
		want     string
	}{
		{"", one, "not the path of a file"},
		{"dir/", one, "not the path of a file"},
		{"a\x00%d", one, "not the path of a file"},
		{"%.0d", one, "not the path of a file"},
		{"dir/.%.0d", one, "not the path of a file"},
		{"dir/%.0d.", one, "not the path of a file"},
		{"psi_%04x", one, "neither a verb for the increment"},
		{"psi_%ld", one, "neither a verb for the increment"},
		{"psi_%", one, "neither a verb for the increment"},
		{"psi_%4", one, "neither a verb for the increment"},
		{"50% x/psi_%d", one, "neither a verb for the increment"},
		{"50% off/psi_%d", one, "neither a verb for the increment"},
		{"50% done/psi_%d", one, "more than one verb for the increment"},
		{"psi_%*d", one, "neither a verb for the increment"},
		{"psi_%#d", one, "neither a verb for the increment"},
		{"psi_%5s", one, "neither a verb for the increment"},
		{"psi_%0100d", one, "wider than 99"},
		{"psi_%.1000000d", one, "wider than 99"},
		{"psi_%d_%d", one, "more than one verb for the increment"},
		{"%d/psi_%d", one, "more than one verb for the increment"},
		{"%s/%s_%d", one, "more than one verb for the field"},
		{"psi_%d.bin", two, "no %s for the ids of the 2 fields"},
		{"psi.xmf", one, "the path of the XDMF file of its series"},
		{"%s.xmf", one, "the path of the XDMF file of its series"},
	} {
		parsed, err := parseTemplate(c.template)
		if err == nil {
			err = parsed.check(c.ids)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q of %q: %v, want %q", c.template, c.ids, err, c.want)
		}
	}
}
