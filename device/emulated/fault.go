package emulated

// Call names a method of a device, for faults.
type Call string

// The calls that can be made to fail.
const (
	CallMemoryInfo        Call = "memory info"
	CallAllocate          Call = "allocate"
	CallWrapMemory        Call = "wrap memory"
	CallAddressRange      Call = "address range"
	CallFree              Call = "free"
	CallAllocateHost      Call = "allocate host"
	CallFreeHost          Call = "free host"
	CallRegisterHost      Call = "register host"
	CallUnregisterHost    Call = "unregister host"
	CallNewStream         Call = "new stream"
	CallWrapStream        Call = "wrap stream"
	CallCloseStream       Call = "close stream"
	CallStreamQuery       Call = "query stream"
	CallStreamSynchronize Call = "synchronize stream"
	CallCopyToDevice      Call = "copy to device"
	CallCopyToHost        Call = "copy to host"
	CallCopyOnDevice      Call = "copy on device"
	CallFill              Call = "fill"
	CallLaunch            Call = "launch"
	CallRecord            Call = "record"
	CallWait              Call = "wait"
	CallNewEvent          Call = "new event"
	CallCloseEvent        Call = "close event"
	CallEventQuery        Call = "query event"
	CallEventSynchronize  Call = "synchronize event"
	CallLoadModule        Call = "load module"
	CallCloseModule       Call = "close module"
	CallKernel            Call = "kernel"
	CallSynchronize       Call = "synchronize"
)

// Fault makes one call fail. The call does nothing then.
type Fault struct {
	// Call is the call to fail; empty for any.
	Call Call
	// Nth counts the matching calls from the injection on; 1, or 0, is the
	// next one.
	Nth int
	// Err is the cause of the error.
	Err error
	// Late makes the queued work fail instead of the call that queues it:
	// the device is lost once the work runs. Only copies, fills and launches
	// match then.
	Late bool

	seen int
}

// Inject makes a call fail. Each fault happens once.
func (d *Device) Inject(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.seen = 0
	d.faults = append(d.faults, &f)
}

// Calls returns the number of calls so far, those that failed included. A test
// that fails each call in turn knows by it when it is through.
func (d *Device) Calls() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// inject counts a call and returns the error that it is to fail with.
func (d *Device) inject(c Call) error {
	d.calls++
	return d.fire(c, false)
}

// injectLate returns the error that queued work is to fail with.
func (d *Device) injectLate(c Call) error { return d.fire(c, true) }

func (d *Device) fire(c Call, late bool) error {
	var err error
	kept := d.faults[:0]
	for _, f := range d.faults {
		if f.Late == late && (f.Call == "" || f.Call == c) {
			f.seen++
			if f.seen >= max(f.Nth, 1) && err == nil {
				err = f.Err
				continue
			}
		}
		kept = append(kept, f)
	}
	d.faults = kept
	return err
}
