// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkTemplates finds the templates of the machines.
func checkTemplates(ctx context.Context, s *survey) {
	s.templates = map[string]vcd.Template{}
	for _, m := range s.plan.Machines {
		if found, seen := s.templates[m.image()]; seen {
			s.judgeKubernetes(m, found)
			continue
		}
		found, err := s.session.Templates.FindTemplate(ctx, m.Spec.Catalog, m.Spec.Template)
		s.templates[m.image()] = found
		if err != nil {
			s.unread(err, "looking up template "+m.image(),
				"correct spec.catalog and spec.template of the VCDMachineTemplate, share the catalog with the user, "+
					"or upload the image again")
			continue
		}
		s.judge(found)
		s.judgeKubernetes(m, found)
	}
}

// judge reports why a template makes no node.
func (s *survey) judge(t vcd.Template) {
	const upload = "upload an image of a Linux distribution with cloud-init: docs/guides/upgrade-kubernetes.md"
	os := strings.ToLower(t.OS)
	switch {
	case strings.HasPrefix(os, "win"):
		s.problem(upload, "the guest operating system of template %s is %s: nodes are Linux", t.Name, t.OS)
	case os != "" && strings.HasSuffix(os, "guest") && !strings.Contains(os, "64"):
		s.problem(upload, "the guest operating system of template %s is %s: Kubernetes takes 64 bits", t.Name, t.OS)
	}
	if t.NICs == 0 {
		s.problem("add a NIC of type VMXNET3 to the VM and capture the template again",
			"template %s has no NIC: VMs from it get none that is connected", t.Name)
	}
	if t.DiskMiB == 0 {
		s.problem(upload, "template %s has no disk: VMs from it do not boot", t.Name)
	}
	s.judgeHardware(t)
}

// judgeHardware compares the virtual hardware of a template with what nodes take and the VDC supports.
func (s *survey) judgeHardware(t vcd.Template) {
	version, known := hardwareVersion(t.Hardware)
	switch {
	case !known:
	case version < oldestHardware:
		s.problem("upgrade the virtual hardware of the VM and capture the template again",
			"template %s has virtual hardware version %d: nodes take %d or later", t.Name, version, oldestHardware)
	case len(s.capacity.Hardware) > 0 && !slices.Contains(s.capacity.Hardware, t.Hardware):
		s.problem("make the image with an older version, or use another VDC",
			"template %s has virtual hardware version %d, which VDC %s does not support", t.Name, version, s.vdc.Name)
	}
}

func hardwareVersion(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "vmx-"))
	return n, err == nil
}

// judgeKubernetes compares the version of Kubernetes in a template with that of the machines.
func (s *survey) judgeKubernetes(m Machines, t vcd.Template) {
	if t.Kubernetes == "" || m.version == "" || vcd.SameKubernetes(t.Kubernetes, m.version) {
		return
	}
	severity := Warning // Kubelets of workers may be older than the API server.
	if m.controlPlane {
		severity = Problem
	}
	s.add(severity, "choose an image with that version in spec.template of the VCDMachineTemplate, or change the version",
		"template %s has Kubernetes %s, and machines of VCDMachineTemplate %s are to have %s", t.Name, t.Kubernetes, m.Name,
		m.version)
}
