package pack

import "testing"

func TestSumOfTheCheckString(t *testing.T) {
	if got := Sum([]byte("123456789")); got != 0xAE8B14860A799888 {
		t.Fatalf("got %016x", got)
	}
	c := NewChecksum(9)
	c.Add(5, []byte("6789"))
	c.Add(0, []byte("12"))
	c.Add(3, []byte("45"))
	d := NewChecksum(9)
	d.Add(2, []byte("3"))
	if got := Finish(c.Part()^d.Part(), 9); got != 0xAE8B14860A799888 {
		t.Fatalf("got %016x", got)
	}
	if got := Combine(Sum([]byte("1234")), Sum([]byte("56789")), 5); got != 0xAE8B14860A799888 {
		t.Fatalf("got %016x", got)
	}
}
