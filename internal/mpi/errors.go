package mpi

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

var (
	// ErrUnavailable says that the program was built without MPI, or launched
	// by another MPI than its own.
	ErrUnavailable = errors.New("MPI is not available")

	// ErrDead says that a wait ran out. Its request is still pending, so the
	// communicator is of no more use.
	ErrDead = errors.New("communicator is dead")
)

func init() {
	sentinel.RegisterAll("mpi", map[string]error{
		"ErrUnavailable": ErrUnavailable,
		"ErrDead":        ErrDead,
	})
}

// An Error is an MPI call that failed.
type Error struct {
	Op    string        // the call and what it was about
	Class string        // the error class, such as MPI_ERR_NO_SPACE
	Text  string        // the library's words, in one line
	Errno syscall.Errno // what the class or the words stand for, 0 if unknown
}

// Error gives the call, the class and the library's words.
func (e *Error) Error() string {
	if strings.HasPrefix(e.Text, e.Class) {
		return e.Op + ": " + e.Text
	}
	return fmt.Sprintf("%s: %s: %s", e.Op, e.Class, e.Text)
}

// Unwrap gives the errno, if it is known.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// errnoOfClass maps the classes of the MPI standard that name one errno.
var errnoOfClass = map[string]syscall.Errno{
	"MPI_ERR_ACCESS":       syscall.EACCES,
	"MPI_ERR_FILE_EXISTS":  syscall.EEXIST,
	"MPI_ERR_NO_SPACE":     syscall.ENOSPC,
	"MPI_ERR_NO_SUCH_FILE": syscall.ENOENT,
	"MPI_ERR_NO_MEM":       syscall.ENOMEM,
	"MPI_ERR_QUOTA":        syscall.EDQUOT,
	"MPI_ERR_READ_ONLY":    syscall.EROFS,
}

// errnosInText are looked for, by the system's words, in errors whose class
// says nothing, such as MPI_ERR_IO.
var errnosInText = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EFBIG, syscall.EIO, syscall.EACCES,
	syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP,
}

func newError(op, class, text string) *Error {
	text = strings.Join(strings.Fields(text), " ")
	e := &Error{Op: op, Class: class, Text: text, Errno: errnoOfClass[class]}
	if e.Errno == 0 {
		lower := strings.ToLower(text)
		for _, errno := range errnosInText {
			if strings.Contains(lower, errno.Error()) {
				e.Errno = errno
				break
			}
		}
	}
	return e
}
