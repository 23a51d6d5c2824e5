package excerpt

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"", ""},
		{"abcd", "abcd"},
		{"abcde", "abcd~"},
		{"abcé", "abc~"},
		{"aéé", "aé~"},
		{"abéé", "abé~"},
		{"😀😀", "😀~"},
		{"a😀", "a~"},
		{"\x80\x80\x80\x80\x80", "~"}, // no character begins near the end
	} {
		if got := Of(c.s, 4, "~"); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.s, got, c.want)
		}
	}
	if got := Of("é", 0, "~"); got != "~" {
		t.Errorf("%q", got)
	}
}
