//go:build !purego

#include "textflag.h"

// How far ahead of the loads the source is prefetched, in bytes: further than
// the page that the hardware's prefetchers stay in. What is copied is not
// needed again soon, hence NTA, which leaves the second level to the chunk.
#define AHEAD 4096

// ROWS loads the arguments that all kernels which move rows of bytes have: DI
// and SI are the rows, R8 and R9 the distances to the next ones, DX the bytes of
// a row, R10 the number of rows.
#define ROWS \
	MOVQ dst_base+0(FP), DI  \
	MOVQ src_base+24(FP), SI \
	MOVQ n+48(FP), DX        \
	MOVQ dstRow+56(FP), R8   \
	MOVQ srcRow+64(FP), R9   \
	MOVQ rows+72(FP), R10

// MASK(n, k) sets the lowest n < 64 bits of k, and clears the others. It uses
// AX.
#define MASK(n, k) \
	MOVQ  $-1, AX   \
	BZHIQ n, AX, AX \
	KMOVQ AX, k

// func copyRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int)
TEXT ·copyRowsAVX512(SB), NOSPLIT, $0-80
	ROWS
	CMPQ DX, $64
	JLT  short

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $256, CX
	JLT  rest

loop:
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	PREFETCHNTA (AHEAD+128)(R11)
	PREFETCHNTA (AHEAD+192)(R11)
	VMOVDQU64   0(R11), Z0
	VMOVDQU64   64(R11), Z1
	VMOVDQU64   128(R11), Z2
	VMOVDQU64   192(R11), Z3
	VMOVDQU64   Z0, 0(R12)
	VMOVDQU64   Z1, 64(R12)
	VMOVDQU64   Z2, 128(R12)
	VMOVDQU64   Z3, 192(R12)
	ADDQ        $256, R11
	ADDQ        $256, R12
	SUBQ        $256, CX
	JGE         loop

rest:
	ADDQ        $128, CX
	JLT         rest64
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	VMOVDQU64   0(R11), Z0
	VMOVDQU64   64(R11), Z1
	VMOVDQU64   Z0, 0(R12)
	VMOVDQU64   Z1, 64(R12)
	ADDQ        $128, R11
	ADDQ        $128, R12
	SUBQ        $128, CX

rest64:
	ADDQ        $64, CX
	JLT         tail
	PREFETCHNTA AHEAD(R11)
	VMOVDQU64   (R11), Z0
	VMOVDQU64   Z0, (R12)
	ADDQ        $64, R11
	ADDQ        $64, R12
	SUBQ        $64, CX

tail:
	// CX is 64 less than what is left: the last 64 bytes of the row overlap
	// what is done.
	CMPQ      CX, $-64
	JEQ       next
	VMOVDQU64 (R11)(CX*1), Z0
	VMOVDQU64 Z0, (R12)(CX*1)

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

short:
	MASK(DX, K1)

shortrow:
	PREFETCHNTA AHEAD(SI)
	VMOVDQU8.Z  (SI), K1, Z0
	VMOVDQU8    Z0, K1, (DI)
	ADDQ        R9, SI
	ADDQ        R8, DI
	DECQ        R10
	JNE         shortrow
	VZEROUPPER
	RET

// func streamRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int)
//
// n is at least 64. Where the rows of dst adjoin, a line that two rows share is
// put together in a register, so that only the first and the last line are
// stored in the ordinary way.
TEXT ·streamRowsAVX512(SB), NOSPLIT, $0-80
	ROWS
	CMPQ R8, DX
	JNE  apart

	// CX is the number of bytes of the row at SI that are done.
	MOVQ     DI, CX
	NEGQ     CX
	ANDQ     $63, CX
	JEQ      row
	MASK(CX, K1)
	VMOVDQU8.Z (SI), K1, Z0
	VMOVDQU8 Z0, K1, (DI)
	ADDQ     CX, DI

row:
	PREFETCHNTA (AHEAD-1)(SI)(R9*1)
	LEAQ (SI)(CX*1), R11
	MOVQ DX, BX
	SUBQ CX, BX
	SUBQ $256, BX
	JLT  rest

loop:
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	PREFETCHNTA (AHEAD+128)(R11)
	PREFETCHNTA (AHEAD+192)(R11)
	VMOVDQU64   0(R11), Z0
	VMOVDQU64   64(R11), Z1
	VMOVDQU64   128(R11), Z2
	VMOVDQU64   192(R11), Z3
	VMOVNTDQ    Z0, 0(DI)
	VMOVNTDQ    Z1, 64(DI)
	VMOVNTDQ    Z2, 128(DI)
	VMOVNTDQ    Z3, 192(DI)
	ADDQ        $256, R11
	ADDQ        $256, DI
	SUBQ        $256, BX
	JGE         loop

rest:
	ADDQ        $128, BX
	JLT         rest64
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	VMOVDQU64   0(R11), Z0
	VMOVDQU64   64(R11), Z1
	VMOVNTDQ    Z0, 0(DI)
	VMOVNTDQ    Z1, 64(DI)
	ADDQ        $128, R11
	ADDQ        $128, DI
	SUBQ        $128, BX

rest64:
	ADDQ        $64, BX
	JLT         part
	PREFETCHNTA AHEAD(R11)
	VMOVDQU64   (R11), Z0
	VMOVNTDQ    Z0, (DI)
	ADDQ        $64, R11
	ADDQ        $64, DI
	SUBQ        $64, BX

part:
	ADDQ  $64, BX
	ADDQ  R9, SI
	XORL  CX, CX
	DECQ  R10
	JEQ   last
	TESTQ BX, BX
	JEQ   row

	// BX bytes of this row and CX of the next one share a line.
	MASK(BX, K1)
	KNOTQ      K1, K2
	VMOVDQU8.Z (R11), K1, Z0
	MOVQ       SI, R11
	SUBQ       BX, R11
	VMOVDQU8   (R11), K2, Z0
	VMOVNTDQ   Z0, (DI)
	ADDQ       $64, DI
	MOVL       $64, CX
	SUBQ       BX, CX
	JMP        row

last:
	TESTQ      BX, BX
	JEQ        done
	MASK(BX, K1)
	VMOVDQU8.Z (R11), K1, Z0
	VMOVDQU8   Z0, K1, (DI)

done:
	VZEROUPPER
	RET

apart:
	MOVQ       SI, R11
	MOVQ       DI, R12
	MOVQ       DX, BX
	MOVQ       DI, CX
	NEGQ       CX
	ANDQ       $63, CX
	JEQ        aligned
	MASK(CX, K1)
	VMOVDQU8.Z (SI), K1, Z0
	VMOVDQU8   Z0, K1, (DI)
	ADDQ       CX, R11
	ADDQ       CX, R12
	SUBQ       CX, BX

aligned:
	SUBQ $128, BX
	JLT  apartrest

apartloop:
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	VMOVDQU64   0(R11), Z0
	VMOVDQU64   64(R11), Z1
	VMOVNTDQ    Z0, 0(R12)
	VMOVNTDQ    Z1, 64(R12)
	ADDQ        $128, R11
	ADDQ        $128, R12
	SUBQ        $128, BX
	JGE         apartloop

apartrest:
	ADDQ      $64, BX
	JLT       aparttail
	VMOVDQU64 (R11), Z0
	VMOVNTDQ  Z0, (R12)
	ADDQ      $64, R11
	ADDQ      $64, R12
	SUBQ      $64, BX

aparttail:
	ADDQ       $64, BX
	JEQ        apartnext
	MASK(BX, K1)
	VMOVDQU8.Z (R11), K1, Z0
	VMOVDQU8   Z0, K1, (R12)

apartnext:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  apart
	VZEROUPPER
	RET

// func copyRowsAVX2(dst, src []byte, n, dstRow, srcRow, rows int)
TEXT ·copyRowsAVX2(SB), NOSPLIT, $0-80
	ROWS
	CMPQ DX, $32
	JLT  short

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $128, CX
	JLT  rest

loop:
	PREFETCHNTA (AHEAD+0)(R11)
	PREFETCHNTA (AHEAD+64)(R11)
	VMOVDQU     0(R11), Y0
	VMOVDQU     32(R11), Y1
	VMOVDQU     64(R11), Y2
	VMOVDQU     96(R11), Y3
	VMOVDQU     Y0, 0(R12)
	VMOVDQU     Y1, 32(R12)
	VMOVDQU     Y2, 64(R12)
	VMOVDQU     Y3, 96(R12)
	ADDQ        $128, R11
	ADDQ        $128, R12
	SUBQ        $128, CX
	JGE         loop

rest:
	ADDQ        $64, CX
	JLT         rest32
	PREFETCHNTA AHEAD(R11)
	VMOVDQU     0(R11), Y0
	VMOVDQU     32(R11), Y1
	VMOVDQU     Y0, 0(R12)
	VMOVDQU     Y1, 32(R12)
	ADDQ        $64, R11
	ADDQ        $64, R12
	SUBQ        $64, CX

rest32:
	ADDQ    $32, CX
	JLT     tail
	VMOVDQU (R11), Y0
	VMOVDQU Y0, (R12)
	ADDQ    $32, R11
	ADDQ    $32, R12
	SUBQ    $32, CX

tail:
	// CX is 32 less than what is left.
	CMPQ    CX, $-32
	JEQ     next
	VMOVDQU (R11)(CX*1), Y0
	VMOVDQU Y0, (R12)(CX*1)

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

short:
	// Rows of less than 32 bytes: two moves that overlap.
	CMPQ DX, $16
	JLT  short8

row16:
	VMOVDQU (SI), X0
	VMOVDQU -16(SI)(DX*1), X1
	VMOVDQU X0, (DI)
	VMOVDQU X1, -16(DI)(DX*1)
	ADDQ    R9, SI
	ADDQ    R8, DI
	DECQ    R10
	JNE     row16
	VZEROUPPER
	RET

short8:
	CMPQ DX, $8
	JLT  short4

row8:
	MOVQ (SI), AX
	MOVQ -8(SI)(DX*1), BX
	MOVQ AX, (DI)
	MOVQ BX, -8(DI)(DX*1)
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row8
	RET

short4:
	CMPQ DX, $4
	JLT  short1

row4:
	MOVL (SI), AX
	MOVL -4(SI)(DX*1), BX
	MOVL AX, (DI)
	MOVL BX, -4(DI)(DX*1)
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row4
	RET

short1:
	XORL CX, CX

byte:
	MOVB (SI)(CX*1), AX
	MOVB AX, (DI)(CX*1)
	INCQ CX
	CMPQ CX, DX
	JLT  byte
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  short1
	RET

// func streamLinesAVX2(dst, src []byte, n, dstRow, srcRow, rows int)
//
// n and dstRow are whole lines of 64 bytes, and dst starts with one.
TEXT ·streamLinesAVX2(SB), NOSPLIT, $0-80
	ROWS

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX

loop:
	PREFETCHNTA AHEAD(R11)
	VMOVDQU     0(R11), Y0
	VMOVDQU     32(R11), Y1
	VMOVNTDQ    Y0, 0(R12)
	VMOVNTDQ    Y1, 32(R12)
	ADDQ        $64, R11
	ADDQ        $64, R12
	SUBQ        $64, CX
	JNE         loop
	ADDQ        R9, SI
	ADDQ        R8, DI
	DECQ        R10
	JNE         row
	VZEROUPPER
	RET

// func fenceSSE2()
TEXT ·fenceSSE2(SB), NOSPLIT, $0-0
	SFENCE
	RET

// The conversions work on the bits, as their twins in Go do, whatever mode the
// floating-point unit is in. With s = 896<<52, the difference of the biases, and
// r = the float32 without its sign, moved to the place of a float64's exponent
// and fraction, the float64 is
//
//	r + s           normal
//	r + 2s          infinity, NaN
//	r               zero
//	r*2^-149        subnormal; r as an integer is converted exactly to a normal
//	                float64, and 149 is taken off its exponent
//
// Only values that are normal for the unit reach it, on lanes that are in use,
// so it has nothing to flush, to round or to raise an exception for.
DATA bits<>+0(SB)/8, $0x7fffffffffffffff  // all but the sign
DATA bits<>+8(SB)/8, $0x3800000000000000  // s
DATA bits<>+16(SB)/8, $0x0950000000000000 // 149<<52
DATA bits<>+24(SB)/8, $0x3810000000000000 // smallest normal float32
DATA bits<>+32(SB)/8, $0x0fe0000000000000 // 254<<52: normal exponents
DATA bits<>+40(SB)/8, $0x7ff0000000000000 // infinity
DATA bits<>+48(SB)/8, $0x000000001fffffff // fraction bits that a float32 lacks
DATA bits<>+56(SB)/8, $0x0000000080000000 // sign of a float32
DATA bits<>+64(SB)/8, $0x8fffffffffffffff // all but the copies of the sign
DATA bits<>+72(SB)/8, $0x8000000000000000 // sign of a float64
DATA bits<>+80(SB)/8, $0x380fffffffffffff // largest that is less than normal
DATA bits<>+88(SB)/8, $0x7fefffffffffffff // largest that is less than infinity
DATA bits<>+96(SB)/4, $0x7fffffff         // all but the sign
DATA bits<>+100(SB)/4, $0x00800000        // smallest normal
DATA bits<>+104(SB)/4, $0x7f000000        // 254<<23
DATA bits<>+108(SB)/4, $0x7f800000        // infinity
DATA bits<>+112(SB)/4, $0x007fffff        // largest subnormal
DATA bits<>+116(SB)/4, $0x7f7fffff        // largest finite
DATA bits<>+120(SB)/4, $0x00000001
DATA bits<>+124(SB)/4, $0x00000000
GLOBL bits<>(SB), RODATA|NOPTR, $128

// CELLS loads the arguments of the kernels that convert. to and from are the
// logarithms of the sizes of a cell.
#define CELLS(to, from) \
	MOVQ dst_base+0(FP), DI  \
	MOVQ src_base+24(FP), SI \
	MOVQ n+48(FP), DX        \
	MOVQ dstRow+56(FP), R8   \
	MOVQ srcRow+64(FP), R9   \
	MOVQ rows+72(FP), R10    \
	SHLQ $to, R8             \
	SHLQ $from, R9

// WIDEN512 turns the 8 float32 of Y0 into the float64 of Z0.
#define WIDEN512(special, done) \
	VPMOVZXDQ  Y0, Z1           \
	VPANDD     Y24, Y0, Y2      \ // without the sign
	VPSLLQ     $32, Z1, Z1      \
	VPSUBD     Y25, Y2, Y3      \
	VPSRAQ     $3, Z1, Z1       \
	VPCMPUD    $1, Y26, Y3, K1  \ // normal
	VPANDQ     Z16, Z1, Z0      \ // sign and r
	KORTESTB   K1, K1           \
	JCC        special          \
	VPADDQ     Z17, Z0, Z0      \
	JMP        done             \
special:                        \
	VPCMPUD    $5, Y27, Y2, K2  \ // infinity, NaN
	VPSUBD     Y29, Y2, Y4      \
	VPCMPUD    $1, Y28, Y4, K3  \ // subnormal, not 0
	VCVTDQ2PD  Y2, Z5           \
	VPSUBQ     Z19, Z5, Z5      \
	VPADDQ     Z17, Z0, K1, Z0  \
	VPADDQ     Z18, Z0, K2, Z0  \
	VPANDQ     Z20, Z0, K3, Z0  \
	VPORQ      Z5, Z0, K3, Z0   \
done:

// func widenRowsAVX512(dst []byte, src []float32, n, dstRow, srcRow, rows int)
TEXT ·widenRowsAVX512(SB), NOSPLIT, $0-80
	CELLS(3, 2)
	VPBROADCASTQ bits<>+64(SB), Z16
	VPBROADCASTQ bits<>+8(SB), Z17
	VPADDQ       Z17, Z17, Z18
	VPBROADCASTQ bits<>+16(SB), Z19
	VPBROADCASTQ bits<>+72(SB), Z20
	VPBROADCASTD bits<>+96(SB), Y24
	VPBROADCASTD bits<>+100(SB), Y25
	VPBROADCASTD bits<>+104(SB), Y26
	VPBROADCASTD bits<>+108(SB), Y27
	VPBROADCASTD bits<>+112(SB), Y28
	VPBROADCASTD bits<>+120(SB), Y29
	MOVQ         DX, BX
	ANDQ         $7, BX
	MASK(BX, K4)

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $8, CX
	JLT  tail

loop:
	PREFETCHNTA AHEAD(R11)
	VMOVDQU32   (R11), Y0
	WIDEN512(special, done)
	VMOVDQU64   Z0, (R12)
	ADDQ        $32, R11
	ADDQ        $64, R12
	SUBQ        $8, CX
	JGE         loop

tail:
	TESTQ       BX, BX
	JEQ         next
	VMOVDQU32.Z (R11), K4, Y0
	WIDEN512(tailspecial, taildone)
	VMOVDQU64   Z0, K4, (R12)

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

// NARROW512 turns the 8 float64 of Z0, all of them exactly a float32, into the
// float32 of Y0.
#define NARROW512(special, done) \
	VPANDQ       Z16, Z0, Z1         \ // without the sign
	VPSUBQ       Z17, Z1, Z2         \
	VPCMPUQ      $1, Z18, Z2, K1     \ // normal
	VPSRLQ       $32, Z0, Z0         \
	VPSUBQ       Z20, Z1, Z3         \
	KORTESTB     K1, K1              \
	JCC          special             \
	VPSRLQ       $29, Z3, Z3         \
	JMP          done                \
special:                             \
	VPCMPUQ      $5, Z19, Z1, K2     \ // infinity, NaN
	VPTESTMQ     Z1, Z1, K3          \ // not 0
	VPCMPUQ      $1, Z17, Z1, K3, K3 \ // subnormal, not 0
	VPADDQ       Z21, Z1, Z4         \
	VCVTTPD2DQ.Z Z4, K3, Y4          \
	VPMOVZXDQ    Y4, Z4              \
	VMOVDQA64.Z  Z3, K1, Z3          \
	VPSUBQ       Z22, Z1, K2, Z3     \
	VPSRLQ       $29, Z3, Z3         \
	VPORQ        Z4, Z3, Z3          \
done:                                \
	VPTERNLOGQ   $0xf8, Z23, Z0, Z3  \ // Z3 | Z0 & sign
	VPMOVQD      Z3, Y0

// func narrowRowsAVX512(dst []float32, src []byte, n, dstRow, srcRow, rows int)
TEXT ·narrowRowsAVX512(SB), NOSPLIT, $0-80
	CELLS(2, 3)
	VPBROADCASTQ bits<>+0(SB), Z16
	VPBROADCASTQ bits<>+24(SB), Z17
	VPBROADCASTQ bits<>+32(SB), Z18
	VPBROADCASTQ bits<>+40(SB), Z19
	VPBROADCASTQ bits<>+8(SB), Z20
	VPBROADCASTQ bits<>+16(SB), Z21
	VPADDQ       Z20, Z20, Z22
	VPBROADCASTQ bits<>+56(SB), Z23
	MOVQ         DX, BX
	ANDQ         $7, BX
	MASK(BX, K4)

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $8, CX
	JLT  tail

loop:
	PREFETCHNTA AHEAD(R11)
	VMOVDQU64   (R11), Z0
	NARROW512(special, done)
	VMOVDQU32   Y0, (R12)
	ADDQ        $64, R11
	ADDQ        $32, R12
	SUBQ        $8, CX
	JGE         loop

tail:
	TESTQ       BX, BX
	JEQ         next
	VMOVDQU64.Z (R11), K4, Z0
	NARROW512(tailspecial, taildone)
	VMOVDQU32   Y0, K4, (R12)

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

// func exactAVX512(src []byte) int
//
// It returns how many of the first cells are certainly exact, in steps of 8
// cells. It knows nothing of subnormal numbers.
TEXT ·exactAVX512(SB), NOSPLIT, $0-32
	MOVQ         src_base+0(FP), SI
	MOVQ         src_len+8(FP), DX
	VPBROADCASTQ bits<>+0(SB), Z16
	VPBROADCASTQ bits<>+24(SB), Z17
	VPBROADCASTQ bits<>+32(SB), Z18
	VPBROADCASTQ bits<>+40(SB), Z19
	VPBROADCASTQ bits<>+48(SB), Z20
	XORL         CX, CX
	SUBQ         $64, DX
	JLT          done

loop:
	PREFETCHNTA AHEAD(SI)
	VMOVDQU64   (SI), Z0
	VPANDQ      Z16, Z0, Z1
	VPTESTNMQ   Z20, Z0, K1         // no low bits
	VPSUBQ      Z17, Z1, Z2
	VPCMPUQ     $1, Z18, Z2, K1, K2 // and normal
	KORTESTB    K2, K2
	JCS         next
	VPCMPUQ     $5, Z19, Z1, K3     // infinity, NaN
	VPTESTNMQ   Z1, Z1, K4          // zero
	KORB        K3, K4, K3
	KANDB       K1, K3, K3
	KORTESTB    K2, K3
	JCC         done

next:
	ADDQ $64, SI
	ADDQ $8, CX
	SUBQ $64, DX
	JGE  loop

done:
	MOVQ CX, ret+24(FP)
	VZEROUPPER
	RET

// WIDEN256 turns the 4 float32 of X0 into the float64 of Y0.
#define WIDEN256(special, done) \
	VPAND      X12, X0, X1     \ // without the sign
	VPMOVSXDQ  X0, Y0          \
	VPCMPGTD   X13, X1, X2     \ // normal or more
	VPCMPGTD   X14, X1, X3     \ // infinity, NaN
	VPAND      Y9, Y0, Y0      \ // sign
	VPANDN     X2, X3, X4      \
	VPMOVZXDQ  X1, Y5          \
	VMOVMSKPS  X4, AX          \
	VPSLLQ     $29, Y5, Y5     \ // r
	CMPL       AX, $15         \
	JNE        special         \
	VPADDQ     Y10, Y5, Y5     \
	VPOR       Y5, Y0, Y0      \
	JMP        done            \
special:                       \
	VPXOR      X6, X6, X6      \
	VPCMPGTD   X6, X1, X6      \
	VPANDN     X6, X2, X6      \ // subnormal, not 0
	VPMOVSXDQ  X2, Y2          \
	VPMOVSXDQ  X3, Y3          \
	VPMOVSXDQ  X6, Y6          \
	VPAND      Y10, Y2, Y2     \
	VPAND      Y10, Y3, Y3     \
	VPADDQ     Y2, Y5, Y5      \
	VPADDQ     Y3, Y5, Y5      \
	VCVTDQ2PD  X1, Y7          \
	VPSUBQ     Y11, Y7, Y7     \
	VPBLENDVB  Y6, Y7, Y5, Y5  \
	VPOR       Y5, Y0, Y0      \
done:

// func widenRowsAVX2(dst []byte, src []float32, n, dstRow, srcRow, rows int)
TEXT ·widenRowsAVX2(SB), NOSPLIT, $0-80
	CELLS(3, 2)
	VPBROADCASTQ bits<>+72(SB), Y9
	VPBROADCASTQ bits<>+8(SB), Y10
	VPBROADCASTQ bits<>+16(SB), Y11
	VPBROADCASTD bits<>+96(SB), X12
	VPBROADCASTD bits<>+112(SB), X13
	VPBROADCASTD bits<>+116(SB), X14

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $4, CX
	JLT  tail

loop:
	PREFETCHNTA AHEAD(R11)
	VMOVDQU     (R11), X0
	WIDEN256(special, done)
	VMOVDQU     Y0, (R12)
	ADDQ        $16, R11
	ADDQ        $32, R12
	SUBQ        $4, CX
	JGE         loop

tail:
	ADDQ $4, CX
	JEQ  next

one:
	VMOVD (R11), X0
	WIDEN256(onespecial, onedone)
	VMOVQ X0, (R12)
	ADDQ  $4, R11
	ADDQ  $8, R12
	DECQ  CX
	JNE   one

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

// NARROW256 turns the 4 float64 of Y0, all of them exactly a float32, into the
// float32 of X0.
#define NARROW256(special, done) \
	VPAND        Y9, Y0, Y1      \ // without the sign
	VPCMPGTQ     Y12, Y1, Y2     \ // normal or more
	VPCMPGTQ     Y13, Y1, Y3     \ // infinity, NaN
	VPSRLQ       $63, Y0, Y0     \
	VPANDN       Y2, Y3, Y4      \
	VPSLLQ       $31, Y0, Y0     \
	VMOVMSKPD    Y4, AX          \
	CMPL         AX, $15         \
	JNE          special         \
	VPSUBQ       Y10, Y1, Y1     \
	VPSRLQ       $29, Y1, Y1     \
	JMP          done            \
special:                         \
	VPXOR        Y6, Y6, Y6      \
	VPCMPGTQ     Y6, Y1, Y6      \
	VPANDN       Y6, Y2, Y6      \ // subnormal, not 0
	VPADDQ       Y11, Y1, Y5     \
	VPAND        Y6, Y5, Y5      \
	VCVTTPD2DQY  Y5, X5          \
	VPMOVZXDQ    X5, Y5          \
	VPAND        Y10, Y2, Y2     \
	VPAND        Y10, Y3, Y3     \
	VPSUBQ       Y2, Y1, Y1      \
	VPSUBQ       Y3, Y1, Y1      \
	VPSRLQ       $29, Y1, Y1     \
	VPANDN       Y1, Y6, Y1      \
	VPOR         Y5, Y1, Y1      \
done:                            \
	VPOR         Y1, Y0, Y0      \
	VEXTRACTI128 $1, Y0, X1      \
	VSHUFPS      $0x88, X1, X0, X0

// func narrowRowsAVX2(dst []float32, src []byte, n, dstRow, srcRow, rows int)
TEXT ·narrowRowsAVX2(SB), NOSPLIT, $0-80
	CELLS(2, 3)
	VPBROADCASTQ bits<>+0(SB), Y9
	VPBROADCASTQ bits<>+8(SB), Y10
	VPBROADCASTQ bits<>+16(SB), Y11
	VPBROADCASTQ bits<>+80(SB), Y12
	VPBROADCASTQ bits<>+88(SB), Y13

row:
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ DX, CX
	SUBQ $4, CX
	JLT  tail

loop:
	PREFETCHNTA AHEAD(R11)
	VMOVDQU     (R11), Y0
	NARROW256(special, done)
	VMOVDQU     X0, (R12)
	ADDQ        $32, R11
	ADDQ        $16, R12
	SUBQ        $4, CX
	JGE         loop

tail:
	ADDQ $4, CX
	JEQ  next

one:
	VMOVQ (R11), X0
	NARROW256(onespecial, onedone)
	VMOVD X0, (R12)
	ADDQ  $8, R11
	ADDQ  $4, R12
	DECQ  CX
	JNE   one

next:
	ADDQ R9, SI
	ADDQ R8, DI
	DECQ R10
	JNE  row
	VZEROUPPER
	RET

// func exactAVX2(src []byte) int
//
// It returns how many of the first cells are certainly exact, in steps of 4
// cells. It knows nothing of subnormal numbers.
TEXT ·exactAVX2(SB), NOSPLIT, $0-32
	MOVQ         src_base+0(FP), SI
	MOVQ         src_len+8(FP), DX
	VPBROADCASTQ bits<>+0(SB), Y9
	VPBROADCASTQ bits<>+24(SB), Y10
	VPBROADCASTQ bits<>+32(SB), Y11
	VPBROADCASTQ bits<>+48(SB), Y12
	VPBROADCASTQ bits<>+88(SB), Y13
	VPXOR        Y14, Y14, Y14
	VPBROADCASTQ bits<>+72(SB), Y15
	VPXOR        Y15, Y10, Y10
	VPXOR        Y15, Y11, Y11
	XORL         CX, CX
	SUBQ         $32, DX
	JLT          done

loop:
	PREFETCHNTA AHEAD(SI)
	VMOVDQU     (SI), Y0
	VPAND       Y9, Y0, Y1
	VPAND       Y12, Y0, Y2
	VPSUBQ      Y10, Y1, Y3  // from the smallest normal on, the sign flipped to compare
	VPCMPEQQ    Y14, Y2, Y2  // no low bits
	VPCMPGTQ    Y3, Y11, Y3  // normal
	VPAND       Y2, Y3, Y3
	VMOVMSKPD   Y3, AX
	CMPL        AX, $15
	JEQ         next
	VPCMPGTQ    Y13, Y1, Y4  // infinity, NaN
	VPCMPEQQ    Y14, Y1, Y5  // zero
	VPOR        Y4, Y5, Y4
	VPAND       Y2, Y4, Y4
	VPOR        Y4, Y3, Y3
	VMOVMSKPD   Y3, AX
	CMPL        AX, $15
	JNE         done

next:
	ADDQ $32, SI
	ADDQ $4, CX
	SUBQ $32, DX
	JGE  loop

done:
	MOVQ CX, ret+24(FP)
	VZEROUPPER
	RET

// NONFINITE adds one to the lanes of n for the NaNs and infinities of v, a register
// or memory. Z20 is all ones.
#define NONFINITE(v, k, n) \
	VFPCLASSPDZ $0x99, v, k \
	VPSUBQ      Z20, n, k, n

// LANES adds the lanes of Z21 up to CX.
#define LANES \
	VEXTRACTI64X4 $1, Z21, Y22 \
	VPADDQ        Y22, Y21, Y21 \
	VEXTRACTI64X2 $1, Y21, X22 \
	VPADDQ        X22, X21, X21 \
	VPSHUFD       $0xee, X21, X22 \
	VPADDQ        X22, X21, X21 \
	VMOVQ         X21, CX

// func nonFiniteAVX512(b []byte) int
TEXT ·nonFiniteAVX512(SB), NOSPLIT, $0-32
	MOVQ       b_base+0(FP), SI
	MOVQ       b_len+8(FP), DX
	VPTERNLOGD $0xff, Z20, Z20, Z20
	VPXORQ     Z21, Z21, Z21
	VPXORQ     Z23, Z23, Z23
	VPXORQ     Z24, Z24, Z24
	VPXORQ     Z25, Z25, Z25
	SUBQ       $256, DX
	JLT        rest

loop:
	NONFINITE(0(SI), K1, Z21)
	NONFINITE(64(SI), K2, Z23)
	NONFINITE(128(SI), K3, Z24)
	NONFINITE(192(SI), K4, Z25)
	ADDQ $256, SI
	SUBQ $256, DX
	JGE  loop

rest:
	ADDQ $192, DX
	JLT  tail

rest64:
	NONFINITE(0(SI), K1, Z21)
	ADDQ $64, SI
	SUBQ $64, DX
	JGE  rest64

tail:
	// DX is 64 less than what is left. The lanes behind it are read as zeros.
	ADDQ        $64, DX
	JEQ         done
	MASK(DX, K1)
	VMOVDQU8.Z  (SI), K1, Z0
	NONFINITE(Z0, K2, Z21)

done:
	VPADDQ Z23, Z21, Z21
	VPADDQ Z24, Z25, Z24
	VPADDQ Z24, Z21, Z21
	LANES
	MOVQ CX, ret+24(FP)
	VZEROUPPER
	RET

// func nonFiniteAVX2(b []byte) int
//
// It looks at the upper halves of the numbers, of two registers at once. The lanes
// count up to 2^32, which is more than 256 GiB have.
TEXT ·nonFiniteAVX2(SB), NOSPLIT, $0-32
	MOVQ         b_base+0(FP), SI
	MOVQ         b_len+8(FP), DX
	MOVL         $0x7ff00000, BX
	VMOVD        BX, X15
	VPBROADCASTD X15, Y15
	VPXOR        Y8, Y8, Y8
	VPXOR        Y9, Y9, Y9
	XORL         CX, CX
	SUBQ         $128, DX
	JLT          rest

loop:
	VMOVUPS  0(SI), Y0
	VMOVUPS  64(SI), Y1
	VSHUFPS  $0xdd, 32(SI), Y0, Y0
	VSHUFPS  $0xdd, 96(SI), Y1, Y1
	VPAND    Y15, Y0, Y0
	VPAND    Y15, Y1, Y1
	VPCMPEQD Y15, Y0, Y0
	VPCMPEQD Y15, Y1, Y1
	VPSUBD   Y0, Y8, Y8
	VPSUBD   Y1, Y9, Y9
	ADDQ     $128, SI
	SUBQ     $128, DX
	JGE      loop

rest:
	ADDQ $128, DX
	JEQ  done

one:
	MOVL  4(SI), AX
	ANDL  BX, AX
	XORL  R8, R8
	CMPL  AX, BX
	SETEQ R8
	ADDQ  R8, CX
	ADDQ  $8, SI
	SUBQ  $8, DX
	JNE   one

done:
	// The sums of two lanes may have 33 bits.
	VPXOR        Y7, Y7, Y7
	VPUNPCKLDQ   Y7, Y8, Y0
	VPUNPCKHDQ   Y7, Y8, Y1
	VPUNPCKLDQ   Y7, Y9, Y2
	VPUNPCKHDQ   Y7, Y9, Y3
	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y3, Y2, Y2
	VPADDQ       Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSHUFD      $0xee, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, AX
	ADDQ         AX, CX
	MOVQ         CX, ret+24(FP)
	VZEROUPPER
	RET

// COPYSUM copies 128 bytes from R11 to R12 and moves Z2 and Z3 over them. They stay in
// Z0 and Z1.
#define COPYSUM \
	PREFETCHNTA (AHEAD+0)(R11)         \
	PREFETCHNTA (AHEAD+64)(R11)        \
	VMOVDQU64   0(R11), Z0             \
	VMOVDQU64   64(R11), Z1            \
	VMOVDQU64   Z0, 0(R12)             \
	VMOVDQU64   Z1, 64(R12)            \
	VPCLMULQDQ  $0x00, Z16, Z2, Z4     \
	VPCLMULQDQ  $0x11, Z16, Z2, Z2     \
	VPCLMULQDQ  $0x00, Z16, Z3, Z5     \
	VPCLMULQDQ  $0x11, Z16, Z3, Z3     \
	VPTERNLOGQ  $0x96, Z0, Z4, Z2      \
	VPTERNLOGQ  $0x96, Z1, Z5, Z3

// func copySumRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int, sum *[16]uint64, keys *[16]uint64, count bool) int
//
// n is a multiple of 128, and not 0.
TEXT ·copySumRowsAVX512(SB), NOSPLIT, $0-112
	ROWS
	MOVQ            sum+80(FP), AX
	MOVQ            keys+88(FP), BX
	VMOVDQU64       0(AX), Z2
	VMOVDQU64       64(AX), Z3
	VBROADCASTI32X4 32(BX), Z16     // 128 bytes
	VPTERNLOGD      $0xff, Z20, Z20, Z20
	VPXORQ          Z21, Z21, Z21
	VPXORQ          Z23, Z23, Z23
	MOVBLZX         count+96(FP), BX

row:
	MOVQ  SI, R11
	MOVQ  DI, R12
	MOVQ  DX, CX
	TESTL BX, BX
	JNE   count

loop:
	COPYSUM
	ADDQ $128, R11
	ADDQ $128, R12
	SUBQ $128, CX
	JNE  loop
	JMP  next

count:
	COPYSUM
	NONFINITE(Z0, K1, Z21)
	NONFINITE(Z1, K2, Z23)
	ADDQ $128, R11
	ADDQ $128, R12
	SUBQ $128, CX
	JNE  count

next:
	ADDQ      R9, SI
	ADDQ      R8, DI
	DECQ      R10
	JNE       row
	VMOVDQU64 Z2, 0(AX)
	VMOVDQU64 Z3, 64(AX)
	VPADDQ    Z23, Z21, Z21
	LANES
	MOVQ      CX, ret+104(FP)
	VZEROUPPER
	RET

// FOLD adds the 128-bit blocks of a, moved forward by the distance that the
// keys k stand for, to b. It uses Z30.
#define FOLD(k, a, b) \
	VPCLMULQDQ $0x00, k, a, Z30 \
	VPCLMULQDQ $0x11, k, a, a   \
	VPTERNLOGQ $0x96, Z30, a, b

// STEP is FOLD into the memory at off(SI).
#define STEP(off, a) \
	VPCLMULQDQ $0x00, Z16, a, Z30      \
	VPCLMULQDQ $0x11, Z16, a, a        \
	VPTERNLOGQ $0x96, off(SI), Z30, a

// func foldAVX512(r uint64, p []byte, ahead *byte, keys *[16]uint64, rest *[16]byte)
//
// len(p) is a multiple of 512, and not 0. As many bytes from ahead on are
// prefetched meanwhile.
TEXT ·foldAVX512(SB), NOSPLIT, $0-56
	MOVQ  r+0(FP), AX
	MOVQ  p_base+8(FP), SI
	MOVQ  p_len+16(FP), CX
	MOVQ  ahead+32(FP), R8
	MOVQ  keys+40(FP), BX
	MOVQ  rest+48(FP), DI
	VMOVQ AX, X8
	VPXORQ 0(SI), Z8, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 256(SI), Z4
	VMOVDQU64 320(SI), Z5
	VMOVDQU64 384(SI), Z6
	VMOVDQU64 448(SI), Z7
	VBROADCASTI32X4 0(BX), Z16
	JMP next

loop:
	PREFETCHT0 0(R8)
	PREFETCHT0 64(R8)
	STEP(0, Z0)
	STEP(64, Z1)
	PREFETCHT0 128(R8)
	PREFETCHT0 192(R8)
	STEP(128, Z2)
	STEP(192, Z3)
	PREFETCHT0 256(R8)
	PREFETCHT0 320(R8)
	STEP(256, Z4)
	STEP(320, Z5)
	PREFETCHT0 384(R8)
	PREFETCHT0 448(R8)
	STEP(384, Z6)
	STEP(448, Z7)
	ADDQ $512, R8

next:
	ADDQ $512, SI
	SUBQ $512, CX
	JNE  loop

	VBROADCASTI32X4 16(BX), Z16 // 256 bytes
	FOLD(Z16, Z0, Z4)
	FOLD(Z16, Z1, Z5)
	FOLD(Z16, Z2, Z6)
	FOLD(Z16, Z3, Z7)
	VBROADCASTI32X4 32(BX), Z16 // 128 bytes
	FOLD(Z16, Z4, Z6)
	FOLD(Z16, Z5, Z7)
	VBROADCASTI32X4 48(BX), Z16 // 64 bytes
	FOLD(Z16, Z6, Z7)

	// The first three blocks of Z7 onto the fourth one.
	VMOVDQU64     64(BX), Z16 // 48, 32, 16 bytes; 0
	VEXTRACTI32X4 $3, Z7, X0
	FOLD(Z16, Z7, Z0)
	VEXTRACTI64X4 $1, Z0, Y1
	VPXORQ        Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X1
	VPXOR         X1, X0, X0
	VMOVDQU       X0, (DI)
	VZEROUPPER
	RET
