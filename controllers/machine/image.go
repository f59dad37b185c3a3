// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// findTemplate looks up the template of the VM.
func (p *placer) findTemplate(ctx context.Context) (phases.Result, error) {
	if selector := p.inputs.vcdMachine.Spec.TemplateSelector; selector != nil {
		return p.selectTemplate(ctx, selector)
	}
	catalog := p.desired.Catalog
	template := p.desired.Template
	found, err := p.session.FindTemplate(ctx, catalog.Name, template.Name)
	p.target.template = found
	if err != nil {
		return problems.OfTemplate(err, catalog, template, problems.Correct)
	}
	return phases.Done, nil
}

// selectTemplate looks up the template that matches a selector. Once the creation of the VM was requested, it looks up
// the recorded template, unless the template was deleted before the VM existed.
func (p *placer) selectTemplate(ctx context.Context, selector *infrav1.TemplateSelector) (phases.Result, error) {
	catalog := p.desired.Catalog
	if recorded := p.inputs.vcdMachine.Spec.RecordedState.Template; recorded != nil && p.inputs.mayHaveVM() {
		found, err := p.session.FindTemplate(ctx, catalog.Name, recorded.ID)
		p.target.template = found
		switch {
		case err == nil:
			return phases.Done, nil
		case p.inputs.vmID() != "" || !errors.Is(err, vcd.ErrNotFound):
			return problems.OfSelector(err, catalog, templateSelectorField, problems.Correct)
		}
	}
	version := p.inputs.machine.Spec.Version
	if version == "" {
		return phases.Stop(infrav1.TemplateNotFoundReason, "The Machine has no Kubernetes version to select a template by: set spec.version of the Machine, or spec.template of the VCDMachine instead of spec.templateSelector"), nil
	}
	found, err := p.session.SelectTemplate(ctx, checks.TemplateQuery(selector, catalog.Name, version))
	p.target.template = found
	if err != nil {
		return problems.OfSelector(err, catalog, templateSelectorField, problems.Correct)
	}
	return phases.Done, nil
}

const templateSelectorField = "spec.templateSelector of the VCDMachine"

// findStorage looks up the storage profile of the VM, if one is set.
func (p *placer) findStorage(ctx context.Context) (phases.Result, error) {
	choice := p.desired.StorageProfile
	if choice.Name == "" {
		return phases.Done, nil
	}
	profile, err := p.session.FindStorageProfile(ctx, p.target.vdc, choice.Name)
	if err != nil {
		return problems.OfField(err, checks.StorageProfile, choice.Field)
	}
	p.target.storage = &profile
	return phases.Done, nil
}

// findPolicies looks up the sizing policy and the placement policy, if they are set.
func (p *placer) findPolicies(ctx context.Context) (phases.Result, error) {
	if choice := p.desired.SizingPolicy; choice.Name != "" {
		policy, err := p.session.FindSizingPolicy(ctx, p.target.vdc, choice.Name)
		if err != nil {
			return problems.OfField(err, checks.SizingPolicy, choice.Field)
		}
		p.target.sizing = &policy
	}
	if choice := p.desired.PlacementPolicy; choice.Name != "" {
		policy, err := p.session.FindPlacementPolicy(ctx, p.target.vdc, choice.Name)
		if err != nil {
			return problems.OfField(err, checks.PlacementPolicy, choice.Field)
		}
		p.target.policy = &policy
	}
	return phases.Done, nil
}

// checkCompute returns a problem if CPUs, memory or a sizing policy cannot be set because another policy defines the
// size.
func (p *placer) checkCompute(ctx context.Context) (phases.Result, error) {
	spec := p.inputs.vcdMachine.Spec
	sizing := p.target.sizing
	sized := spec.CPUs > 0 || spec.Memory != nil
	switch policy := p.target.policy; {
	case (sizing != nil || sized) && policy != nil && (policy.CPUs > 0 || policy.MemoryMiB > 0):
		return phases.Fail(intervals.Remedy, infrav1.PlacementInvalidReason,
			"placement policy %s also sets the size of VMs, as vGPU policies may: remove spec.sizingPolicy, spec.cpus and spec.memory of the VCDMachine, and spec.placementConstraint.sizingPolicy of its zone", policy.Name), nil
	case !sized:
		return phases.Done, nil
	case sizing != nil:
		return phases.Fail(intervals.Remedy, infrav1.PlacementInvalidReason,
			"spec.cpus and spec.memory are set, but %s sets sizing policy %s: remove one of them",
			p.desired.SizingPolicy.Field, sizing.Name), nil
	}
	return p.defaultSizingProblem(ctx)
}

// defaultSizingProblem returns a problem if CPUs and memory cannot be set because the default sizing policy of the VDC
// defines them.
func (p *placer) defaultSizingProblem(ctx context.Context) (phases.Result, error) {
	fixed, err := p.session.FindDefaultSizing(ctx, p.target.vdc)
	if err != nil {
		return problems.OfLookup(err, infrav1.SizingPolicyNotFoundReason, "remove spec.cpus and spec.memory")
	}
	return problems.OfFinding(checks.DefaultSizing(&p.inputs.vcdMachine.Spec, p.target.vdc, fixed)), nil
}

// checkHardware returns a problem if the VM cannot have the requested version of virtual hardware.
func (p *placer) checkHardware(ctx context.Context) (phases.Result, error) {
	spec := &p.inputs.vcdMachine.Spec
	template := p.target.template
	if spec.HardwareVersion == "" || spec.HardwareVersion == template.Hardware {
		return phases.Done, nil
	}
	if found := checks.HardwareUpgrade(spec, template); found != nil {
		return problems.OfFinding(found), nil
	}
	versions, err := p.session.HardwareVersions(ctx, p.target.vdc)
	if err != nil {
		return problems.OfRead(err, "Reading the hardware versions of VDC "+p.target.vdc.Name)
	}
	return problems.OfFinding(checks.HardwareSupported("spec.hardwareVersion", spec.HardwareVersion, p.target.vdc, versions)), nil
}

// checkExtraConfig checks that the identity allows the extra configuration of the machine.
func (p *placer) checkExtraConfig(context.Context) (phases.Result, error) {
	return extraConfigProblem(p.session, p.inputs.vcdMachine), nil
}

// extraConfigProblem returns a problem if the identity of a session does not allow the extra configuration of a
// machine.
func extraConfigProblem(opened *session.Session, m *infrav1.VCDMachine) phases.Result {
	return problems.OfFinding(checks.ExtraConfig(m.Spec.ExtraConfig, opened.Identity, opened.AllowedExtraConfig))
}

// checkDisk returns a problem if the first disk cannot have the requested size.
func (p *placer) checkDisk(ctx context.Context) (phases.Result, error) {
	spec := &p.inputs.vcdMachine.Spec
	if checks.GrowsLinkedClone(spec, p.target.template, p.target.vdc) {
		return consolidationProblem(ctx, p.session, p.target.vdc)
	}
	return problems.OfFinding(checks.DiskSize(spec, p.target.template)), nil
}

// findDisks looks up the storage profile of each additional disk. It also looks up the template, because the additional
// disks follow the disks of the template.
func (p *placer) findDisks(ctx context.Context) (phases.Result, error) {
	specs := p.inputs.vcdMachine.Spec.AdditionalDisks
	if len(specs) == 0 {
		return phases.Done, nil
	}
	if out, err := p.findTemplate(ctx); err != nil || out != phases.Done {
		return out, err
	}
	p.target.disks = make([]vcd.NewDisk, len(specs))
	for i, disk := range specs {
		p.target.disks[i].SizeMiB = sizes.InMiB(disk.Size)
		p.target.disks[i].IOPS = int64(disk.IOPS)
		if disk.StorageProfile == "" {
			continue
		}
		profile, err := p.session.FindStorageProfile(ctx, p.target.vdc, disk.StorageProfile)
		if err != nil {
			return problems.OfField(err, checks.StorageProfile,
				fmt.Sprintf("spec.additionalDisks[%d].storageProfile of the VCDMachine", i))
		}
		p.target.disks[i].StorageProfile = &profile
	}
	return phases.Done, nil
}

// checkIOPS returns a problem if a disk cannot have the requested I/O operations per second.
func (p *placer) checkIOPS(ctx context.Context) (phases.Result, error) {
	for _, disk := range checks.DisksWithIOPS(&p.inputs.vcdMachine.Spec, p.desired.StorageProfile.Name, p.target.template) {
		profile, err := p.session.FindStorageProfile(ctx, p.target.vdc, disk.StorageProfile)
		if err != nil {
			return problems.OfField(err, checks.StorageProfile, p.desired.StorageProfile.Field)
		}
		limits, err := p.session.IOPSLimits(ctx, profile)
		if err != nil {
			return problems.OfRead(err, "Reading the IOPS limits of storage profile "+profile.Name)
		}
		if found := checks.IOPS(disk, profile, limits); found != nil {
			return problems.OfFinding(found), nil
		}
	}
	return phases.Done, nil
}
