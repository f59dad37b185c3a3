package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archive writes the index as an OCI layout in a tar file, and returns the index' digest. The layout has exactly one
// entry: readers that are not told a name take it.
func (b build) archive(name string, index v1.ImageIndex) (digest v1.Hash, rerr error) {
	folder, err := os.MkdirTemp("", "images-*")
	if err != nil {
		return digest, fmt.Errorf("making a folder for an image: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": b.version,
			"io.containerd.image.name":          b.reference(name),
		}},
	})
	if _, err := layout.Write(folder, top); err != nil {
		return digest, fmt.Errorf("laying out %s: %w", name, err)
	}
	out, err := os.Create(filepath.Join(b.out, b.file(name)+".tar"))
	if err != nil {
		return digest, fmt.Errorf("writing an archive: %w", err)
	}
	defer func() { rerr = errors.Join(rerr, out.Close()) }()
	if err := tarFolder(out, folder, b.created.UTC()); err != nil {
		return digest, fmt.Errorf("writing %s: %w", out.Name(), err)
	}
	return index.Digest()
}

// tarFolder writes the files below a folder in the order of their names.
func tarFolder(out io.Writer, folder string, created time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{
			Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)),
			ModTime: created,
		}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close())
}
