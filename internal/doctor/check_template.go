// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// findTemplates finds the templates of machines, by catalog and name, and checks that they make nodes in a VDC.
func findTemplates(ctx context.Context, in *vcd.Templates, at place, machines []Machines) (map[string]vcd.Template,
	findings,
) {
	templates := map[string]vcd.Template{}
	var f findings
	for _, m := range machines {
		if found, seen := templates[m.image()]; seen {
			f.join(judgeKubernetes(m, found))
			continue
		}
		found, err := in.FindTemplate(ctx, m.Spec.Catalog, m.Spec.Template)
		templates[m.image()] = found
		if err != nil {
			f.unread(err, "looking up template "+m.image(),
				"correct spec.catalog and spec.template of the VCDMachineTemplate, share the catalog with the user, "+
					"or upload the image again")
			continue
		}
		f.join(judgeTemplate(found))
		f.join(judgeHardware(found, at))
		f.join(judgeKubernetes(m, found))
	}
	return templates, f
}

// judgeTemplate reports why a template makes no node.
func judgeTemplate(t vcd.Template) findings {
	const upload = "upload an image of a Linux distribution with cloud-init: docs/guides/upgrade-kubernetes.md"
	var f findings
	os := strings.ToLower(t.OS)
	switch {
	case strings.HasPrefix(os, "win"):
		f.problem(upload, "the guest operating system of template %s is %s: nodes are Linux", t.Name, t.OS)
	case os != "" && strings.HasSuffix(os, "guest") && !strings.Contains(os, "64"):
		f.problem(upload, "the guest operating system of template %s is %s: Kubernetes takes 64 bits", t.Name, t.OS)
	}
	if t.NICs == 0 {
		f.problem("add a NIC of type VMXNET3 to the VM and capture the template again",
			"template %s has no NIC: VMs from it get none that is connected", t.Name)
	}
	if t.DiskMiB == 0 {
		f.problem(upload, "template %s has no disk: VMs from it do not boot", t.Name)
	}
	return f
}

// oldestHardware is the oldest version of virtual hardware with all that nodes use: VMware Tools of it show guestinfo as
// current Linux distributions read it.
const oldestHardware = 14

// judgeHardware compares the virtual hardware of a template with what nodes take and a VDC supports.
func judgeHardware(t vcd.Template, at place) findings {
	var f findings
	version, known := hardwareVersion(t.Hardware)
	switch {
	case !known:
	case version < oldestHardware:
		f.problem("upgrade the virtual hardware of the VM and capture the template again",
			"template %s has virtual hardware version %d: nodes take %d or later", t.Name, version, oldestHardware)
	case len(at.capacity.Hardware) > 0 && !slices.Contains(at.capacity.Hardware, t.Hardware):
		f.problem("make the image with an older version, or use another VDC",
			"template %s has virtual hardware version %d, which VDC %s does not support", t.Name, version, at.vdc.Name)
	}
	return f
}

func hardwareVersion(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "vmx-"))
	return n, err == nil
}

// judgeKubernetes compares the version of Kubernetes in a template with that of the machines.
func judgeKubernetes(m Machines, t vcd.Template) findings {
	var f findings
	if t.Kubernetes == "" || m.version == "" || vcd.SameKubernetes(t.Kubernetes, m.version) {
		return f
	}
	severity := Warning // Kubelets of workers may be older than the API server.
	if m.controlPlane {
		severity = Problem
	}
	f.add(severity, "choose an image with that version in spec.template of the VCDMachineTemplate, or change the version",
		"template %s has Kubernetes %s, and machines of VCDMachineTemplate %s are to have %s", t.Name, t.Kubernetes, m.Name,
		m.version)
	return f
}
