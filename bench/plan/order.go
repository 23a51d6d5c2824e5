package plan

// Order is the order of n contestants in a repetition. Over n repetitions everybody
// is at every place once, and over n (2n if n is odd) everybody comes equally often
// after everybody else: a contestant that leaves the machine in a bad state harms all
// others alike. This is the square of E. J. Williams (1949).
func Order(n, repetition int) []int {
	order := make([]int, n)
	low, high := 0, n-1
	for i := range order {
		place := low
		if i%2 == 1 {
			place = high
			high--
		} else {
			low++
		}
		at := i
		if n%2 == 1 && repetition/n%2 == 1 {
			at = n - 1 - i
		}
		order[at] = (place + repetition) % n
	}
	return order
}
