// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"slices"
	"strconv"
)

// maxTemplates limits the number of templates that are read.
const maxTemplates = 512

type wireTemplate struct {
	Status     int      `xml:"status,attr"`
	GoldMaster bool     `xml:"goldMaster,attr"`
	VMs        []wireVM `xml:"Children>Vm"`
}

type wireVM struct {
	OS              string  `xml:"VmSpecSection>OsType"`
	CPUs            int64   `xml:"VmSpecSection>NumCpus"`
	MemoryMiB       int64   `xml:"VmSpecSection>MemoryResourceMb>Configured"`
	DisksMiB        []int64 `xml:"VmSpecSection>DiskSection>DiskSettings>SizeMb"`
	HardwareVersion string  `xml:"VmSpecSection>HardwareVersion"`
	NICs            []struct {
		Index int `xml:"NetworkConnectionIndex"`
	} `xml:"NetworkConnectionSection>NetworkConnection"`
}

// readCatalogs reads the catalogs that are visible to the user, including those of other organizations, with their
// templates.
func (r *reader) readCatalogs(ctx context.Context, names *aliases) ([]Catalog, error) {
	records, err := r.readQuery(ctx, "catalogs", "catalog")
	if err != nil {
		return nil, r.noteIfHidden("catalogs", err)
	}
	templates, err := r.readQuery(ctx, "templates", "vAppTemplate")
	if err := r.noteIfHidden("templates", err); err != nil {
		return nil, err
	}
	var catalogs []Catalog
	read := 0
	for _, x := range records {
		catalog := Catalog{Name: names.assign("catalog", uuidOf(x.of("href")))}
		for _, t := range templates {
			if uuidOf(t.of("catalog")) != uuidOf(x.of("href")) {
				continue
			}
			if read == maxTemplates {
				r.note("templates: the file contains only the first %d", maxTemplates)
				break
			}
			read++
			template, found, err := r.readTemplate(ctx, names, t)
			if err != nil {
				return nil, err
			}
			if found {
				catalog.Templates = append(catalog.Templates, template)
			}
		}
		catalogs = append(catalogs, catalog)
	}
	return catalogs, nil
}

// resolved is the status of a usable template.
const resolved = 8

// statuses are the possible statuses of a template.
var statuses = []int{-1, 0, 1, resolved}

// readTemplate reads a template. It returns found=false if the template no longer exists or is not visible to the user.
func (r *reader) readTemplate(ctx context.Context, names *aliases, listed record) (_ Template, found bool, _ error) {
	id := uuidOf(listed.of("href"))
	var shown wireTemplate
	if err := r.readXML(ctx, "/api/vAppTemplate/vappTemplate-"+id, nil, &shown); err != nil {
		return Template{}, false, r.noteIfHidden("some templates", err)
	}
	template := Template{
		Name:              names.assign("template", id),
		VDC:               names.of(uuidOf(listed.of("vdc"))),
		KubernetesVersion: kubernetesVersion(listed.of("name")),
		GoldMaster:        shown.GoldMaster,
	}
	if template.KubernetesVersion != "" {
		template.Name += alias("-kube-" + template.KubernetesVersion)
	}
	if shown.Status != resolved && slices.Contains(statuses, shown.Status) {
		template.Status = shown.Status
	}
	for i, vm := range shown.VMs {
		template.VMs = append(template.VMs, TemplateVM{
			Name:            alias("vm-" + strconv.Itoa(i+1)),
			OS:              matching(vm.OS, guestOS),
			CPUs:            vm.CPUs,
			MemoryMiB:       vm.MemoryMiB,
			DisksMiB:        vm.DisksMiB,
			NICs:            len(vm.NICs),
			HardwareVersion: matching(vm.HardwareVersion, hardwareVersion),
		})
	}
	return template, true, nil
}
