package field

// SlotBytes sets the size of the chunks of rings that are made from now on, and
// returns what it was.
func SlotBytes(n int64) int64 {
	old := slotBytes
	slotBytes = n
	return old
}
