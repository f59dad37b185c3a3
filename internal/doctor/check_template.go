// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// findTemplates looks up the templates of machines and checks that their VMs can become nodes in a VDC. The keys of the
// result are catalog and name.
func findTemplates(ctx context.Context, in *vcd.Templates, at place, machines []Machines) (map[string]vcd.Template, findings) {
	templates := map[string]vcd.Template{}
	var f findings
	for _, m := range machines {
		found, seen := templates[m.image()]
		if !seen {
			var err error
			found, err = findTemplate(ctx, in, m)
			templates[m.image()] = found
			if err != nil {
				f.unread(err, "looking up template "+m.image(), templateRemedy(m))
				continue
			}
			f.join(checkTemplate(found))
		}
		f.join(checkHardware(m, found, at))
		f.join(checkKubernetes(m, found))
	}
	return templates, f
}

// findTemplate looks up the template of machines. If their Kubernetes version is unknown, a selector selects from all
// versions.
func findTemplate(ctx context.Context, in *vcd.Templates, m Machines) (vcd.Template, error) {
	if selector := m.Spec.TemplateSelector; selector != nil {
		return in.SelectTemplate(ctx, checks.TemplateQuery(selector, m.Spec.Catalog, m.version))
	}
	return in.FindTemplate(ctx, m.Spec.Catalog, m.Spec.Template)
}

// templateRemedy returns the remedy if no template is found.
func templateRemedy(m Machines) string {
	if m.Spec.TemplateSelector != nil {
		return "correct spec.catalog and spec.templateSelector of the VCDMachineTemplate, share the catalog with the user, or upload an image that matches"
	}
	return "correct spec.catalog and spec.template of the VCDMachineTemplate, share the catalog with the user, or upload the image again"
}

// checkTemplate reports why VMs from a template cannot become nodes.
func checkTemplate(t vcd.Template) findings {
	const upload = "upload an image of a Linux distribution with cloud-init: docs/get-started/node-images.md"
	var f findings
	info := checks.NodeInfo(t.OS)
	switch {
	case info.OperatingSystem == "windows":
		f.problem(upload, "the guest operating system of template %s is %s, but nodes require Linux", t.Name, t.OS)
	case info.Architecture == "" && strings.HasSuffix(t.OS, "Guest"):
		f.problem(upload, "the guest operating system of template %s is %s, but Kubernetes requires a 64-bit system", t.Name, t.OS)
	}
	if t.NICs == 0 {
		f.problem("add a NIC of type VMXNET3 to the VM and capture the template again",
			"template %s has no NIC, so its VMs have no connected NIC", t.Name)
	}
	if t.DiskMiB == 0 {
		f.problem(upload, "template %s has no disk, so its VMs cannot boot", t.Name)
	}
	return f
}

// oldestHardware is the oldest version of virtual hardware that supports all features that nodes use. From this version
// on, VMware Tools expose guestinfo in the form that current Linux distributions read.
const oldestHardware = 14

// checkHardware compares the virtual hardware of machines with the requirements of nodes and the versions that a VDC
// supports.
func checkHardware(m Machines, t vcd.Template, at place) findings {
	var f findings
	version, known := checks.HardwareNumber(cmp.Or(m.Spec.HardwareVersion, t.Hardware))
	if known && version < oldestHardware {
		f.problem("upgrade the virtual hardware of the VM and capture the template again",
			"VMs from template %s have virtual hardware version %d, but nodes require %d or later", t.Name, version, oldestHardware)
		return f
	}
	if m.Spec.HardwareVersion == "" {
		f.found(Problem, checks.HardwareSupported("virtual hardware of template "+t.Name, t.Hardware, at.vdc, at.capacity.Hardware))
		return f
	}
	f.foundOf(m, Problem, cmp.Or(checks.HardwareUpgrade(&m.Spec, t),
		checks.HardwareSupported("spec.hardwareVersion", m.Spec.HardwareVersion, at.vdc, at.capacity.Hardware)))
	return f
}

// checkKubernetes compares the Kubernetes version of a template with the version of planned machines.
func checkKubernetes(m Machines, t vcd.Template) findings {
	var f findings
	found := checks.Kubernetes(t, m.version)
	if found == nil {
		return f
	}
	found.Remedy = "set an image with this version in spec.template of the VCDMachineTemplate, or change the version"
	severity := Warning // the kubelets of workers may be older than the API server
	if m.controlPlane {
		severity = Problem
	}
	f.foundOf(m, severity, found)
	return f
}
