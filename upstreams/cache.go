package upstreams

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	cacheVersion = 1
	cacheKeyFile = "catalog.key"
	cacheKeySize = 32
	// A catalog that nobody wrote again for so long belongs to a
	// configuration that is gone.
	cacheMaxAge = 60 * 24 * time.Hour
)

// listing is what a server told of itself when it was last connected.
type listing struct {
	Version      int               `json:"version"`
	Protocol     string            `json:"protocol,omitempty"`
	Title        string            `json:"title,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools"` // as listed, broken ones included
}

// cache keeps the catalogs of the last start in a folder of the user, one file
// a server. The file's name is an HMAC over the server's whole configuration,
// under a random key of the user: whoever changes anything starts afresh, and
// the names tell nothing of the secrets that went in. Several processes may
// use one folder. What cannot be read is absent.
type cache struct {
	dir string
	key []byte
}

// openCache returns nil, which is a cache that holds nothing, for "".
func openCache(dir string) (*cache, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	path := filepath.Join(dir, cacheKeyFile)
	key, err := os.ReadFile(path)
	if err != nil || len(key) != cacheKeySize {
		fresh := make([]byte, cacheKeySize)
		rand.Read(fresh)
		if err := writeFileAtomic(path, fresh); err != nil {
			return nil, fmt.Errorf("cache key: %w", err)
		}
		// Another process may have been faster or slower: the file decides.
		if key, err = os.ReadFile(path); err != nil || len(key) != cacheKeySize {
			return nil, errors.Join(fmt.Errorf("cache key %s is not readable", path), err)
		}
	}
	return &cache{dir: dir, key: key}, nil
}

func (c *cache) path(cfg *Config) string {
	mac := hmac.New(sha256.New, c.key)
	mac.Write(cfg.fingerprint())
	return filepath.Join(c.dir, "catalog-"+hex.EncodeToString(mac.Sum(nil)[:16])+".json")
}

// load returns the listing kept for exactly this configuration, or nil.
func (c *cache) load(cfg *Config) *listing {
	if c == nil {
		return nil
	}
	b, err := os.ReadFile(c.path(cfg))
	if err != nil {
		return nil
	}
	var l listing
	if json.Unmarshal(b, &l) != nil || l.Version != cacheVersion {
		return nil
	}
	return &l
}

// store keeps a listing, and removes those that nobody uses any more.
func (c *cache) store(cfg *Config, l *listing) error {
	if c == nil {
		return nil
	}
	l.Version = cacheVersion
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // else the tools' bytes would change
	if err := enc.Encode(l); err != nil {
		return err
	}
	if err := writeFileAtomic(c.path(cfg), b.Bytes()); err != nil {
		return err
	}
	c.prune()
	return nil
}

func (c *cache) prune() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		mine := strings.HasPrefix(e.Name(), "catalog-")
		if info, err := e.Info(); mine && err == nil && time.Since(info.ModTime()) > cacheMaxAge {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
}

// writeFileAtomic writes a file of mode 0600 so that a reader sees the old or
// the new content, whole.
func writeFileAtomic(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "catalog-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
