package brick

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// ranks is the communicator of a plan. It counts the collective calls, those of
// messages between two ranks apart: their number must not grow with the number of files.
type ranks struct {
	*comm.Comm
	calls int
}

func (r *ranks) Agree(ctx context.Context, err error) error {
	r.calls++
	return r.Comm.Agree(ctx, err)
}

func (r *ranks) AgreeMax(ctx context.Context, err error, v []int64) error {
	r.calls++
	return r.Comm.AgreeMax(ctx, err, v)
}

func (r *ranks) AllReduceInt64(ctx context.Context, op comm.Op, v []int64) error {
	r.calls++
	return r.Comm.AllReduceInt64(ctx, op, v)
}

// agreeSum is Agree and, if all is well, the sums of the ranks' v, in place, for the
// price of one of them. After an error v has undefined content.
func (r *ranks) agreeSum(ctx context.Context, err error, v []int64) error {
	if err == nil {
		err = cancelled(ctx)
	}
	message := make([]int64, 1+len(v))
	copy(message[1:], v)
	if err != nil {
		message[0] = 1
	}
	if err := r.AllReduceInt64(ctx, comm.Sum, message); err != nil {
		return err
	}
	if message[0] != 0 {
		return r.Agree(ctx, err)
	}
	copy(v, message[1:])
	return nil
}

func (r *ranks) SplitNode() (*comm.Comm, error) {
	r.calls++
	return r.Comm.SplitNode()
}

// atWork returns the context of a call to which all ranks have come, and what ends the
// call: however long one of them takes with the files, the others wait, and it is told.
func (r *ranks) atWork(ctx context.Context, log *slog.Logger, call string) (work context.Context, end func()) {
	return waiting.Begin(r.AtWork(ctx), log, r.Rank(), call)
}

// sameJobs is collective and agrees that no rank has an error and that all brought
// the same list of files. A digest is compared, so that the cost is that of one small reduction;
// the lists themselves travel only to say what differs. The jobs that it returns have
// rank 0's absolute paths.
func (r *ranks) sameJobs(ctx context.Context, jobs []job, err error) ([]job, error) {
	list := encodeJobs(jobs)
	digest := sha256.Sum256(list)
	const words = sha256.Size / 8
	var v [2*words + 1]int64
	for i := range words {
		w := int64(binary.LittleEndian.Uint64(digest[8*i:]))
		v[i], v[words+i] = w, ^w // the maximum of ^w is ^ of the minimum
	}
	paths, perr := absolute(jobs)
	if err == nil {
		err = perr
	}
	if err == nil {
		err = cancelled(ctx)
	}
	if err != nil {
		v[2*words] = 1
	}
	all := v[:]
	maxima := paths.Maxima()
	for _, m := range maxima {
		all = append(all, *m)
	}
	if err := r.AllReduceInt64(ctx, comm.Max, all); err != nil {
		return nil, err
	}
	copy(v[:], all)
	for i, m := range maxima {
		*m = all[len(v)+i]
	}
	if v[2*words] != 0 {
		return nil, r.Agree(ctx, err)
	}
	same := true
	for i := range words {
		same = same && v[i] == ^v[words+i]
	}
	if same {
		if err := paths.Settle(ctx, r.Comm); err != nil {
			return nil, err
		}
		settled := slices.Clone(jobs)
		for i := range settled {
			settled[i].Path = paths.At(i)
		}
		return settled, nil
	}
	zero, err := r.Broadcast(ctx, 0, list)
	if err != nil {
		return nil, err
	}
	return nil, r.Agree(ctx, differ(decodeJobs(zero), jobs))
}

// sameFiles agrees that no rank has an error, own, and that all nodes see the same files,
// of each as many bytes as given; less than 0 stands for all. On one node, and where the
// caller has made sure, it is an agreement and nothing else.
func (r *ranks) sameFiles(ctx context.Context, fsys vfs.FS, jobs []job, size int64, own error) error {
	if onedir.IsChecked(ctx) || len(jobs) == 0 {
		return r.Agree(ctx, own)
	}
	r.calls++
	parts := make([]onedir.Part, len(jobs))
	for i, j := range jobs {
		parts[i] = onedir.Part{Path: j.Path, Offset: j.Offset, Length: size}
	}
	return onedir.From(ctx).Same(ctx, r.Comm, own, filesOf(jobs), func() (onedir.Digest, error) { return onedir.Sample(fsys, parts) })
}

// filesOf are the files of a call in errors.
func filesOf(jobs []job) string {
	if len(jobs) == 1 {
		return jobs[0].Path
	}
	return fmt.Sprintf("%s and %d other files of the call", jobs[0].Path, len(jobs)-1)
}

// absolute are the paths of the jobs as this rank finds them.
func absolute(jobs []job) (*onedir.Paths, error) {
	list := make([]string, len(jobs))
	var first error
	for i, j := range jobs {
		var err error
		if list[i], err = onedir.Abs(j.Path); err != nil && first == nil {
			first = err
		}
	}
	return onedir.NewPaths(list...), first
}

// differ names the first file that this rank has otherwise than rank 0.
func differ(zero, mine []job) error {
	for i := range min(len(zero), len(mine)) {
		if a, b := zero[i], mine[i]; a != b {
			return fmt.Errorf("%w: file %d is %s at %s, on rank 0 it is %s at %s",
				ErrDisagree, i, b.label(), b.place(), a.label(), a.place())
		}
	}
	if len(zero) != len(mine) {
		return fmt.Errorf("%w: %d files, %d on rank 0", ErrDisagree, len(mine), len(zero))
	}
	return nil
}

// encodeJobs keeps names and paths byte for byte: a path is not always UTF-8.
func encodeJobs(jobs []job) []byte {
	var b []byte
	for _, j := range jobs {
		for _, s := range []string{j.Name, j.Path} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
		part := byte(0)
		if j.Within {
			part = 1
		}
		b = binary.AppendVarint(append(b, part), j.Offset)
	}
	return b
}

// decodeJobs decodes what encodeJobs of another rank of this program made.
func decodeJobs(b []byte) []job {
	next := func() string {
		n, w := binary.Uvarint(b)
		s := string(b[w : w+int(n)])
		b = b[w+int(n):]
		return s
	}
	var jobs []job
	for len(b) > 0 {
		j := job{Name: next(), Path: next(), Within: b[0] == 1}
		offset, w := binary.Varint(b[1:])
		j.Offset, b = offset, b[1+w:]
		jobs = append(jobs, j)
	}
	return jobs
}
