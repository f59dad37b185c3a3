// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// An Image is an image that VMs can boot from.
type Image struct {
	Name              string `json:"name"` // name of the template
	KubernetesVersion string `json:"kubernetesVersion"`
	// Network is the file with the manifest of a network plug-in whose image is in the store. It is empty if there is
	// none.
	Network string `json:"network"`
	// Images are the references of images in the store that are built from this project.
	Images []string `json:"images"`
}

// Images returns the images in a folder, sorted by name.
func Images(dir string) ([]Image, error) {
	all, err := images(dir)
	if err != nil {
		return nil, err
	}
	var out []Image
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name].Image)
	}
	return out, nil
}

// AddTemplates adds a template for each image before the templates of the first catalog.
func AddTemplates(m *vcdsim.Model, found []Image) {
	for i := range m.Orgs {
		for j := range m.Orgs[i].Catalogs {
			catalog := &m.Orgs[i].Catalogs[j]
			if len(catalog.Templates) == 0 {
				continue
			}
			var added []vcdsim.Template
			for _, img := range found {
				added = append(added, vcdsim.Template{
					Name:              img.Name,
					Description:       "Boots",
					KubernetesVersion: img.KubernetesVersion,
					VMs: []vcdsim.TemplateVM{{
						Name:      img.Name,
						OS:        "debian12_64Guest",
						CPUs:      2,
						MemoryMiB: 2048,
						DisksMiB:  []int64{20480},
						NICs:      1,
					}},
				})
			}
			catalog.Templates = append(added, catalog.Templates...)
			return
		}
	}
}

// An image is the image that VMs of a template boot from.
type image struct {
	Image

	// Layers are root file systems, the topmost first.
	Layers []string `json:"layers"`
	// ImageStore is a populated /var/lib/containerd. It is empty if the image has none.
	ImageStore string `json:"imageStore"`
	Init       string `json:"init"`
}

// images reads the image descriptions in a folder. Paths in them are relative to the folder. The folder may be empty,
// because images may be built while the simulator runs.
func images(dir string) (map[string]image, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
	}
	out := map[string]image{}
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // the caller's own folder
		if err != nil {
			return nil, fmt.Errorf("reading an image: %w", err)
		}
		var img image
		if err := json.Unmarshal(data, &img); err != nil {
			return nil, fmt.Errorf("reading the image %s: %w", file, err)
		}
		if err := img.complete(dir); err != nil {
			return nil, fmt.Errorf("the image %s: %w", file, err)
		}
		out[img.Name] = img
	}
	return out, nil
}

// complete makes paths absolute and checks that they exist.
func (i *image) complete(dir string) error {
	if i.Name == "" || len(i.Layers) == 0 || !filepath.IsAbs(i.Init) {
		return fmt.Errorf("name, layers and an absolute init path are required, got %q, %q, %q", i.Name, i.Layers, i.Init)
	}
	paths := []*string{}
	for n := range i.Layers {
		paths = append(paths, &i.Layers[n])
	}
	for _, p := range []*string{&i.ImageStore, &i.Network} {
		if *p != "" {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		abs, err := filepath.Abs(filepath.Join(dir, *p))
		if err != nil {
			return fmt.Errorf("the path %s: %w", *p, err)
		}
		if _, err := os.Stat(abs); err != nil {
			return fmt.Errorf("a part of it: %w", err)
		}
		*p = abs
	}
	return nil
}
