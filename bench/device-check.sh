#!/usr/bin/env bash
# device-check.sh [DEVICE]: runs on a real device (cuda:0 by default, or hip:0) what the
# tests otherwise run on the fake driver, and then measures. Less than six minutes.
#
# It runs what bench/device-build has put into build/device/, on this machine or on
# another one; if there is nothing, it builds it. Logs and the table are left in OUT
# (build/device/results). It ends with status 1 if anything failed, and says at the end
# what could not be run.
#
#   FIELDSTONE_CHECK="-size 24 -repeats 2"   other arguments for the measurement
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD bin=$PWD/build/device
device=${1:-cuda:0}
kind=${device%%:*}
out=${OUT:-$bin/results}
mkdir -p "$out" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
began=$SECONDS
readonly most=350 # seconds for everything
failed=() missing=()

# stage LIMIT NAME COMMAND...: one step, its output in a log. Status 1 if it failed.
stage() {
	local limit=$1 name=$2 log status=0 start=$SECONDS left=$((most - (SECONDS - began)))
	shift 2
	log=$out/${name//[^A-Za-z0-9]/-}.log
	limit=$((left < limit ? (left > 1 ? left : 1) : limit))
	timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
	if [ $status -eq 0 ]; then
		printf 'ok      %-40s %3d s\n' "$name" $((SECONDS - start))
		return 0
	fi
	[ $status -ge 124 ] && echo "ended after $limit s or by a signal (status $status)" >>"$log"
	printf 'FAILED  %-40s %3d s, %s\n' "$name" $((SECONDS - start)) "$log"
	tail -n 25 "$log" | sed 's/^/        /'
	failed+=("$name")
	return 1
}

if [ ! -x "$bin/device" ]; then
	command -v go >/dev/null || {
		echo "nothing to run: no build/device/ (make device-check-build makes it), and no Go to build it" >&2
		exit 1
	}
	bench/device-build || exit 1
	began=$SECONDS
fi

# Where the device can't be opened, all that follows would say the same.
if ! stage 60 "open $device" "$bin/device" -device "$device" -list; then
	exit 1
fi
sed 's/^/        /' "$out/open-${device//[^A-Za-z0-9]/-}.log"

# tests PACKAGE [PATTERN]: a package's tests on the device.
tests() {
	local package=$1 log name="tests of $1" passed skipped
	if ! (cd "$root/$package" && FIELDSTONE_DEVICE=$device stage 100 "$name" \
		"$bin/tests/$package.test" -test.v -test.timeout=95s -test.run "${2:-.}"); then
		failed+=("$name")
	fi
	log=$out/${name//[^A-Za-z0-9]/-}.log
	passed=$(grep -c '^ *--- PASS' "$log") skipped=$(grep -c '^ *--- SKIP' "$log")
	printf '        %d passed, %d for the fake driver only\n' "$passed" "$skipped"
	if [ "$passed" -eq 0 ]; then
		failed+=("$name: nothing ran")
	fi
}
case $kind in
cuda | hip) tests "device/$kind" ;;
esac
tests field
tests publish Device
tests examples/allencahn/internal/stepper

# The example: the same bits on the device and on the host, and restarts from one on the
# other.
simulate() { # simulate DEVICE FOLDER ARGUMENT...
	local on=$1 folder=$2
	shift 2
	"$bin/allencahn" -device "$on" -nx 60 -ny 44 -nz 52 -periodic xz -start random -steps 40 -every 20 -progress=false -out "$folder" "$@"
}
example() {
	set -e
	simulate host "$work/host"
	simulate "$device" "$work/device"
	diff -r "$work/host/step_40/fields" "$work/device/step_40/fields"
	simulate host "$work/back" -restart "$work/device/step_20"
	diff -r "$work/host/step_40/fields" "$work/back/step_40/fields"
	simulate "$device" "$work/there" -restart "$work/host/step_20"
	diff -r "$work/host/step_40/fields" "$work/there/step_40/fields"
	"$bin/fieldstone" verify "$work/device"
}
export -f simulate example
export bin device work
stage 60 "example on $device and host" bash -c example

# shellcheck disable=SC2086 # words
stage 120 measurement "$bin/device" -device "$device" ${FIELDSTONE_CHECK:-}
echo
cat "$out/measurement.log"
echo

[ "$kind" = cuda ] || missing+=("CUDA: the device is $device")
[ "$kind" = hip ] || missing+=("HIP: the device is $device")
missing+=("several ranks on one device: the programs here are built without MPI")
missing+=("the mumax adapter: it is built with cgo, see docs/gpu.md")
printf 'not run: %s\n' "${missing[@]}"
printf '%d s in all\n' $((SECONDS - began))
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}"
	exit 1
fi
