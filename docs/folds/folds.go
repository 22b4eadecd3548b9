// Roles of folds, as streamwatch.folds gives them: whether a fold tests on an event, and how often it trains on it.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
)

// Role of a fold on an event: it tests first, then trains Weight times.
type Role struct {
	Tests  bool
	Weight int
}

// poisson is ceil(2^53 * CDF) of Poisson(1), which h >> 11 is compared with.
var poisson = []uint64{
	3313563428353948, 6627126856707896, 8283908570884870, 8836169142277195, 8974234285125276, 9001847313694892,
	9006449485123162, 9007106938184343, 9007189119816991, 9007198251109507, 9007199164238759, 9007199247250509,
	9007199254168155, 9007199254700281, 9007199254738290, 9007199254740824, 9007199254740983,
}

// Roles of a fold below folds on the event of an id; validation is cross-validation, split-validation or bootstrap.
func Roles(id string, fold int, validation string, folds int, prequential bool) Role {
	if fold < 0 || fold >= folds {
		panic(fmt.Sprintf("fold must be below %d, got %d", folds, fold))
	}
	h, weight := Hash(id, fold, validation), 0
	if validation == "bootstrap" {
		for weight < len(poisson) && h>>11 >= poisson[weight] {
			weight++
		}
	} else if (h%uint64(folds) == uint64(fold)) == (validation == "split-validation") {
		weight = 1
	}
	return Role{prequential || weight == 0, weight}
}

// Hash is BLAKE2b with a digest of 8 bytes, read as little-endian integer.
func Hash(id string, fold int, validation string) uint64 {
	text := validation + "\x00" + id + "\x00"
	if validation == "bootstrap" {
		text += strconv.Itoa(fold)
	}
	return blake2b64([]byte(text))
}

// BLAKE2b (RFC 7693) with a digest of 8 bytes; the standard library has none.
var iv = [8]uint64{
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

var sigma = [10]string{
	"0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
	"2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
}

func blake2b64(message []byte) uint64 {
	h := iv
	h[0] ^= 0x01010000 ^ 8
	for start := 0; ; start += 128 {
		last := start+128 >= len(message)
		end := min(start+128, len(message))
		compress(&h, message[start:end], uint64(end), last)
		if last {
			return h[0]
		}
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func compress(h *[8]uint64, part []byte, counted uint64, last bool) {
	var block [128]byte
	copy(block[:], part)
	var v [16]uint64
	copy(v[:8], h[:])
	copy(v[8:], iv[:])
	v[12] ^= counted
	if last {
		v[14] = ^v[14]
	}
	word := func(round, i int) uint64 {
		k, _ := strconv.ParseUint(sigma[round%10][i:i+1], 16, 8)
		return binary.LittleEndian.Uint64(block[8*k:])
	}
	for round := 0; round < 12; round++ {
		for i := 0; i < 8; i++ { // four columns, then four diagonals
			shift := i / 4
			a, b, c, d := i%4, 4+(i+shift)%4, 8+(i+2*shift)%4, 12+(i+3*shift)%4
			v[a] += v[b] + word(round, 2*i)
			v[d] = bits.RotateLeft64(v[d]^v[a], -32)
			v[c] += v[d]
			v[b] = bits.RotateLeft64(v[b]^v[c], -24)
			v[a] += v[b] + word(round, 2*i+1)
			v[d] = bits.RotateLeft64(v[d]^v[a], -16)
			v[c] += v[d]
			v[b] = bits.RotateLeft64(v[b]^v[c], -63)
		}
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}

// Reads lines of validation, folds, prequential, fold, id, with tabs between; prints digest, tests, weight.
func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		given := strings.SplitN(lines.Text(), "\t", 5)
		folds, _ := strconv.Atoi(given[1])
		fold, _ := strconv.Atoi(given[3])
		role := Roles(given[4], fold, given[0], folds, given[2] == "true")
		digest := bits.ReverseBytes64(Hash(given[4], fold, given[0]))
		fmt.Printf("%016x\t%t\t%d\n", digest, role.Tests, role.Weight)
	}
}
