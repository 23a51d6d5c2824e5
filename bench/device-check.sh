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
most=230 # seconds, until the measurement
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
	grep -v -E '^ *(--- PASS|=== [A-Z]+ )' "$log" | (grep -B5 -A5 -E 'FAIL|panic:|fatal error|^ended after' || tail "$log") |
		tail -n 40 | sed 's/^/        /'
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

# tests PACKAGE DEVICE [PATTERN]: a package's tests on the device.
tests() {
	local name="tests of $1" program=$bin/tests/$1.test log passed
	log=$out/${name//[^A-Za-z0-9]/-}.log
	# As go test does, in the folder of the package.
	FIELDSTONE_DEVICE=$2 stage 100 "$name" env -C "$root/$1" "$program" -test.v -test.timeout=95s -test.run "${3:-.}" || return
	passed=$(grep -c '^ *--- PASS' "$log")
	printf '        %d passed, %d skipped\n' "$passed" "$(grep -c '^ *--- SKIP' "$log")"
	[ "$passed" -gt 0 ] || failed+=("$name: nothing ran")
}
case $kind in
cuda | hip) tests "device/$kind" "$device" ;;
esac
tests field "$device"
tests publish "$device" Device
tests examples/allencahn/internal/stepper "$device"
if [ "$kind" != cuda ]; then
	:
elif "$bin/tests/device/cuda/mumax.test" -test.list '^$' >/dev/null 2>&1; then
	tests device/cuda/mumax "mumax:${device#cuda:}"
else
	missing+=("the mumax adapter: its tests were not built, or can't be started here")
fi

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
ranks() {
	set -e
	local run=(mpirun.openmpi --oversubscribe --bind-to none -n)
	"${run[@]}" 2 "$bin/allencahn-openmpi" -device "$device" -nx 60 -ny 44 -nz 52 -periodic xz -start random -steps 20 -progress=false -out "$work/two"
	"${run[@]}" 3 "$bin/allencahn-openmpi" -device host -nx 60 -ny 44 -nz 52 -periodic xz -start random -steps 40 -progress=false -out "$work/three" \
		-restart "$work/two/step_20"
	diff -r "$work/host/step_40/fields" "$work/three/step_40/fields"
}
export -f simulate example ranks
export bin device work OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
stage 60 "example on $device and the host" bash -c example
if command -v mpirun.openmpi >/dev/null && [ -x "$bin/allencahn-openmpi" ]; then
	stage 60 "2 ranks on $device, 3 on the host" bash -c ranks
else
	missing+=("several ranks: no Open MPI here, or the example was not built for it")
fi

most=350
# shellcheck disable=SC2086 # words
stage 120 measurement "$bin/device" -device "$device" ${FIELDSTONE_CHECK:-}
echo
cat "$out/measurement.log"
echo

[ "$kind" = cuda ] || missing+=("CUDA: the device is $device")
[ "$kind" = hip ] || missing+=("HIP: the device is $device")
printf 'not run: %s\n' "${missing[@]}"
printf '%d s in all\n' $((SECONDS - began))
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}"
	exit 1
fi
