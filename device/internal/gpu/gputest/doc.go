// Package gputest has the tests that the spaces over a vendor's driver share, on
// a fake driver.
package gputest
