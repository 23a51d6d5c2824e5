// Alone asks for the world communicator and says what it got.
package main

import (
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
)

func main() {
	c, err := comm.World()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println("ranks:", c.Size())
}
