package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// certificates is the first place where Go looks on Linux.
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	accounts     = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groups       = "root:x:0:\nnonroot:x:65532:\n"
)

// A tree is what a layer holds: files by absolute path. All belong to root, and only root can change them; folders
// are made as needed.
type tree struct {
	files       map[string][]byte
	executables map[string]bool
	open        []string // folders that everybody may write to, as /tmp
}

// tar writes the tree, the same bytes for the same tree.
func (t tree) tar(created time.Time) ([]byte, error) {
	headers := map[string]*tar.Header{}
	put := func(name string, h tar.Header) {
		h.ModTime, h.Format = created, tar.FormatPAX
		headers[name] = &h
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if headers[dir] == nil {
				headers[dir] = &tar.Header{
					Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755, ModTime: created,
					Format: tar.FormatPAX,
				}
			}
		}
	}
	for name, content := range t.files {
		mode := int64(0o644)
		if t.executables[name] {
			mode = 0o755
		}
		put(name, tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: mode, Size: int64(len(content))})
	}
	for _, name := range t.open {
		put(name, tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: 0o1777})
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := w.WriteHeader(headers[name]); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", name, err)
		}
		if _, err := w.Write(t.files[name]); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("ending a layer: %w", err)
	}
	return out.Bytes(), nil
}

// write puts the tree into a folder.
func (t tree) write(folder string) error {
	for name, content := range t.files {
		place, mode := filepath.Join(folder, name), os.FileMode(0o644)
		if t.executables[name] {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(place, content, mode); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	for _, name := range t.open {
		place := filepath.Join(folder, name)
		// What a folder is made with goes through the process' mask; what is set after does not.
		if err := errors.Join(os.MkdirAll(place, 0o777), os.Chmod(place, 0o777|os.ModeSticky)); err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
	}
	return nil
}

// base is what every program finds: certificates of the public authorities, the accounts, and a folder for passing
// files.
func base() tree {
	return tree{
		files: map[string][]byte{
			certificates:  rootCertificates(),
			"/etc/passwd": []byte(accounts),
			"/etc/group":  []byte(groups),
		},
		open: []string{"/tmp"},
	}
}

// rootCertificates are Mozilla's, as a Go module has them: its version is in go.mod, so every machine writes the same
// bytes, which the file of an operating system would not give. Those that Mozilla trusts under conditions only are left
// out: a file cannot tell the conditions.
func rootCertificates() []byte {
	var out strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if certificate, err := x509.ParseCertificate(root.Certificate); err == nil {
			fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		}
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
	}
	return []byte(out.String())
}
