// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A record describes an image to the hypervisor. Paths are relative to its file. The file is written last, so an image
// with a record is complete.
type record struct {
	// Name is the name of the catalog template.
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Layers are the layers of the root file system, topmost first.
	Layers []string `json:"layers"`
	// ImageStore is the initial content of a node's /var/lib/containerd.
	ImageStore string `json:"imageStore"`
	// Init is the path of the first program in the root file system.
	Init string `json:"init"`
	// Images are the references of this project's images in the store: manager, cloud controller manager.
	Images []string `json:"images"`
	// Network is the manifest of the network plug-in.
	Network string `json:"network"`
}

func (b *builder) record(r release, store, node, system, base string) (string, error) {
	content, err := json.MarshalIndent(record{
		Name:              r.name(),
		KubernetesVersion: r.version,
		Layers:            []string{node + "/rootfs", system + "/rootfs", base + "/rootfs"},
		ImageStore:        store + "/containerd",
		Init:              "/usr/local/lib/vm/init",
		Images:            b.own.references(),
		Network:           system + "/rootfs" + manifest,
	}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, r.name()+".json")
	temp := filepath.Join(b.dir, unfinished+r.name())
	if err := os.WriteFile(temp, append(content, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("writing the image's record: %w", err)
	}
	return path, os.Rename(temp, path)
}

// prune removes artifacts that no record refers to, unless a virtual machine has mounted them. Virtual machines have
// hard links to the required content of image stores.
func (b *builder) prune() error {
	used, err := b.used()
	if err != nil {
		return err
	}
	mounts, err := b.mounts("/proc")
	if err != nil {
		return err
	}
	for _, kind := range []string{"base", "system", "kubernetes", "store"} {
		found, err := filepath.Glob(filepath.Join(b.dir, kind+"-*"))
		if err != nil {
			return err
		}
		for _, path := range found {
			if used[filepath.Base(path)] || strings.Contains(mounts, path+"/") {
				continue
			}
			if err := b.remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove renames the folder to an unfinished one first, because an artifact with its final name must be complete.
func (b *builder) remove(path string) error {
	temp := filepath.Join(b.dir, unfinished+filepath.Base(path))
	if err := errors.Join(os.Rename(path, temp), os.RemoveAll(temp)); err != nil {
		return fmt.Errorf("removing an old artefact: %w", err)
	}
	return nil
}

// mounts returns the mounts of artifacts in all processes of this machine as one text, because each process may have a
// separate mount namespace.
func (b *builder) mounts(proc string) (string, error) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "mountinfo"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && bytes.Contains(content, []byte(b.dir)) {
			all.Write(content)
		}
	}
	return all.String(), nil
}

// used returns the artifacts that records refer to.
func (b *builder) used() (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a record: %w", err)
		}
		var r record
		if err := json.Unmarshal(content, &r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, path := range append(r.Layers, r.ImageStore) {
			artifact, _, _ := strings.Cut(path, "/")
			found[artifact] = true
		}
	}
	return found, nil
}
