#!/usr/bin/env bash
# device-check.sh [DEVICE]: runs on a real device (cuda:0 by default, or hip:0) what the
# tests otherwise run on the fake driver, and then measures. At most 400 seconds.
#
# It runs what bench/device-build has put into build/device/, on this machine or on another
# one; if there is nothing, it builds it. The tree may be read-only, and the environment
# empty: it takes bash, coreutils, diff, grep, gzip, sed and tar. OUT (build/device-results)
# gets two files, device-check.txt with each result and figure as soon as it is there, so
# that it may be stopped at any time, and device-check.log with what the programs said.
# It ends with status 1 if anything failed, and says at the end what could not be run.
#
#   FIELDSTONE_CHECK="-size 24 -repeats 2"   other arguments for the measurement
#   FIELDSTONE_CHECK_SECONDS=300             another limit
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
device=${1:-cuda:0}
kind=${device%%:*}
case $kind in
cuda | hip) ;;
*)
	echo "device-check.sh: $device is neither a CUDA nor a HIP device" >&2
	exit 2
	;;
esac
archive=$root/build/device/$kind.tar.gz
if [ ! -e "$archive" ]; then
	command -v go >/dev/null || {
		echo "nothing to run: no $archive (make device-check-build VENDOR=$kind makes it), and no Go to build it" >&2
		exit 1
	}
	bench/device-build -all "$kind" || exit 1
fi
SECONDS=0
whole=${FIELDSTONE_CHECK_SECONDS:-390} # the rest is for the end
most=$whole                            # of these, until what comes next must be over
out=${OUT:-$root/build/device-results}
mkdir -p "$out" || exit 1
figures=$out/device-check.txt log=$out/device-check.log
: >"$figures" && : >"$log" || exit 1
work=$(mktemp -d) || exit 1
running=
trap '[ -z "$running" ] || kill "$running" 2>/dev/null; rm -rf "$work"' EXIT
trap 'say "cut off after %d s, during: %s" "$SECONDS" "$stage"; exit 1' INT TERM HUP
failed=() missing=() stage=

# say FORMAT ARGUMENT...: a line, into the file first.
say() {
	local line
	# shellcheck disable=SC2059 # the first is a format
	line=$(printf "$@")
	printf '%s\n' "$line" >>"$figures"
	printf '%s\n' "$line"
}

# stage [-show] LIMIT NAME COMMAND...: one step, its output in the log; with -show the
# command writes to the file of figures itself, and its output is shown too. Status 1 if
# it failed, 2 if it didn't begin.
stage() {
	local show= limit status=0 start=$SECONDS left=$((most - SECONDS)) from
	if [ "$1" = -show ]; then
		show=1
		shift
	fi
	limit=$1 stage=$2
	shift 2
	if [ $left -lt 2 ]; then
		missing+=("$stage: no time was left")
		return 2
	fi
	limit=$((left < limit ? left : limit))
	printf '=== %s\n' "$stage" >>"$log"
	from=$(stat -c %s "$log")
	if [ "$show" ]; then
		timeout -k 5 "$limit" "$@" 2>>"$log" </dev/null &
	else
		timeout -k 5 "$limit" "$@" >>"$log" 2>&1 </dev/null &
	fi
	running=$! # in the background, so that a signal needn't wait for it
	wait "$running" || status=$?
	running=
	if [ $status -eq 0 ]; then
		say 'ok      %-44s %3d s' "$stage" $((SECONDS - start))
		return 0
	fi
	[ $status -ge 124 ] && echo "ended after $limit s or by a signal (status $status)" >>"$log"
	say 'FAILED  %-44s %3d s' "$stage" $((SECONDS - start))
	say '%s' "$(said "$from" | grep -v -E '^ *(--- PASS|=== [A-Z]+ )' | reasons | tail -n 40 | sed 's/^/        /')"
	failed+=("$stage")
	return 1
}

said() { tail -c +$(($1 + 1)) "$log"; } # what the log has from a place on

# The lines that say why something failed, or the last ones.
reasons() {
	local text
	text=$(cat)
	grep -B5 -A5 -E 'FAIL|panic:|fatal error|^ended after' <<<"$text" || tail <<<"$text"
}

# program DIR: what the archive has, where it may be run.
bin=$work/bin
mkdir "$bin" && tar -C "$bin" -xzf "$archive" || exit 1
[ -x "$bin/device" ] || {
	echo "device-check.sh: programs can't be run in $work: TMPDIR must name another folder" >&2
	exit 1
}

smi=$(command -v nvidia-smi || echo /usr/local/nvidia/bin/nvidia-smi)
if [ "$kind" = cuda ] && [ -x "$smi" ]; then
	properties=index,name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,pcie.link.gen.current
	properties+=,pcie.link.width.current,power.limit,ecc.mode.current,mig.mode.current,compute_mode
	say 'nvidia-smi: %s' "$(timeout 20 "$smi" --format=csv,noheader --query-gpu=$properties 2>&1 || timeout 20 "$smi" -L 2>&1)"
elif [ "$kind" = cuda ]; then
	missing+=("nvidia-smi: not installed")
fi

# Where the device can't be opened, all that follows would say the same.
stage 40 "open $device" "$bin/device" -device "$device" -list || exit 1
say '%s' "$(tail -n 1 "$log")"

# tests LIMIT PACKAGE DEVICE [PATTERN]: a package's tests on the device.
tests() {
	local limit=$1 package=$2 on=$3 from passed
	local program=$bin/tests/$package.test
	from=$(stat -c %s "$log")
	# As go test does, in the folder of the package.
	FIELDSTONE_DEVICE=$on stage "$limit" "tests of $package" env -C "$root/$package" "$program" -test.v "-test.timeout=$((limit - 5))s" -test.run "${4:-.}" || return
	passed=$(said "$from" | grep -c '^ *--- PASS')
	say '        %d passed, %d skipped' "$passed" "$(said "$from" | grep -c '^ *--- SKIP')"
	[ "$passed" -gt 0 ] || failed+=("tests of $package: nothing ran")
}
most=$((whole / 2))
tests 80 "device/$kind" "$device"
tests 60 field "$device"
tests 45 publish "$device" Device
tests 45 examples/allencahn/internal/stepper "$device"

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
	"$bin/device" -verify "$work/device"
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

# measure LIMIT PART: a process for each part, so that none is lost with another.
most=$whole
measure() {
	# shellcheck disable=SC2086 # words
	stage -show "$1" "measure: $2" "$bin/device" -device "$device" -parts "$2" -also "$figures" ${FIELDSTONE_CHECK:-}
}
say 'Times are medians. A ratio is that of the rates: 1 where the yardstick is reached; the spread is the ratio'\''s.'
measure 60 big
measure 70 kernels
measure 90 ring
measure 30 capture
# The module is compiled from its text, as the first time on a machine.
CUDA_CACHE_DISABLE=1 measure 30 costs
measure 40 blocked
measure 40 readings
measure 40 bundles

# memcheck looks at each access of the kernels.
memcheck() {
	"$sanitizer" --tool memcheck --error-exitcode 9 "$bin/device" -device "$device" -parts big,kernels -big 65536 -size 24 -repeats 1 -batch 0
}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ "$kind" != cuda ]; then
	:
elif [ -x "$sanitizer" ]; then
	export -f memcheck
	export sanitizer
	from=$(stat -c %s "$log")
	if stage 80 "compute-sanitizer memcheck" bash -c memcheck && [ "$(said "$from" | grep -c 'ERROR SUMMARY: 0 errors')" = 0 ]; then
		failed+=("compute-sanitizer memcheck: no summary that says 0 errors")
	fi
	say '        %s' "$(said "$from" | grep 'ERROR SUMMARY' | tail -n 1)"
else
	missing+=("compute-sanitizer: not installed")
fi

# What device-build -all adds.
if [ -e "$bin/tests/device/cuda/mumax.test" ]; then
	if "$bin/tests/device/cuda/mumax.test" -test.list '^$' >/dev/null 2>&1; then
		tests 60 device/cuda/mumax "mumax:${device#cuda:}"
	else
		missing+=("the mumax adapter: its tests can't be started here")
	fi
fi
if [ -e "$bin/allencahn-openmpi" ]; then
	if command -v mpirun.openmpi >/dev/null; then
		stage 60 "2 ranks on $device, 3 on the host" bash -c ranks
	else
		missing+=("several ranks: no Open MPI here")
	fi
fi

for line in "${missing[@]}"; do say 'not run: %s' "$line"; done
for line in "${failed[@]}"; do say 'failed: %s' "$line"; done
say '%d s in all' $SECONDS
[ ${#failed[@]} -eq 0 ]
