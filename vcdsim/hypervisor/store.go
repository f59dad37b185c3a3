// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// linkTree copies a folder with hard links, except for databases, which are modified in place. To another file system
// it copies all files.
func linkTree(from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return linkOne(path, filepath.Join(to, rel), d)
	})
	if errors.Is(err, syscall.EXDEV) {
		return copyTree(from, to)
	}
	return wrap("copying the image store", err)
}

// copyTree copies a folder, including owners, devices and extended attributes.
func copyTree(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("copying the image store: %w", err)
	}
	out, err := exec.Command("cp", "--archive", from, to).CombinedOutput() //nolint:gosec,noctx // it exits by itself
	if err != nil {
		return fmt.Errorf("copying the image store: %w\n%s", err, out)
	}
	return nil
}

func linkOne(path, target string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		if err := os.MkdirAll(target, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chmod(target, info.Mode().Perm()|info.Mode()&(os.ModeSticky|os.ModeSetgid))
	case info.Mode().IsRegular() && strings.HasSuffix(path, ".db"):
		return copyFile(path, target, info.Mode().Perm())
	default:
		return os.Link(path, target)
	}
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from) //nolint:gosec // below the image
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                    // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) //nolint:gosec // below the VM's folder
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the first error is more specific
		return err
	}
	return out.Close()
}
