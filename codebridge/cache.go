package codebridge

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
)

// trimCache takes the table of source positions out of the compiled engines
// that wazero keeps in dir. We never show such positions, and wazero reads the
// table in steps of eight bytes, which is most of the time that a worker takes
// to start. A file that is not what wazero v1.11 writes is left alone.
func trimCache(dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		at, ok := positionTable(b)
		if !ok {
			continue
		}
		f, err := os.CreateTemp(filepath.Dir(path), "trim-*")
		if err != nil {
			return
		}
		_, err = f.Write(append(b[:at:at], 0))
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
}

// positionTable finds the byte that says whether the table follows. ok tells
// that it does, and that the file is exactly as it should be:
//
//	"WAZEVO", length and text of the version, number of functions (4 bytes),
//	their offsets (8 each), length of the code (8), code, checksum (4),
//	1, number of positions (8), positions (16 each)
func positionTable(b []byte) (at int, ok bool) {
	const magic = "WAZEVO"
	if !bytes.HasPrefix(b, []byte(magic)) || len(b) < len(magic)+1 {
		return 0, false
	}
	at = len(magic) + 1 + int(b[len(magic)])
	if len(b) < at+4 {
		return 0, false
	}
	functions := int(binary.LittleEndian.Uint32(b[at:]))
	at += 4
	if functions > len(b)/8 || len(b) < at+8*functions+8 {
		return 0, false
	}
	at += 8 * functions
	code := binary.LittleEndian.Uint64(b[at:])
	at += 8
	if code > uint64(len(b)) || len(b) < at+int(code)+4+1+8 {
		return 0, false
	}
	at += int(code) + 4
	if b[at] != 1 {
		return 0, false
	}
	positions := binary.LittleEndian.Uint64(b[at+1:])
	return at, positions <= uint64(len(b))/16 && len(b) == at+1+8+16*int(positions)
}
