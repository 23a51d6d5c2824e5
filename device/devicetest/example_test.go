package devicetest_test

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// A check of the suite notices a planted bug.
func ExamplePlant() {
	config := devicetest.Config{Open: func() (device.Space, error) {
		dev, err := emulated.New()
		if err != nil {
			return nil, err
		}
		return devicetest.Plant(dev, devicetest.WaitDoesNothing), nil
	}}
	for _, check := range devicetest.Checks() {
		if check.Name == "an event orders two streams" {
			fmt.Println(check.Run(config) != nil)
		}
	}
	// Output: true
}
