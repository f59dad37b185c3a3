// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// minDiskSize detects sizes without a unit, such as 40 bytes.
var minDiskSize = resource.MustParse("1Gi")

// machineValidator returns the validator of VCDMachines. inPlace reports whether Cluster API may change CPUs and memory
// of existing VMs.
func machineValidator(inPlace bool) *validator[*infrav1.VCDMachine] {
	return &validator[*infrav1.VCDMachine]{
		kind:      "VCDMachine",
		finalizer: infrav1.MachineFinalizer,
		spec:      func(m *infrav1.VCDMachine) any { return settings.MachineSpec(m) },
		rules: func(m *infrav1.VCDMachine) field.ErrorList {
			errs := machineSpecErrors(&m.Spec, field.NewPath("spec"))
			return append(errs, vmNameErrors(m)...)
		},
		recorded: recordedChangeErrors,
		changes: func(ctx context.Context, oldM, newM *infrav1.VCDMachine) (field.ErrorList, error) {
			errs := append(machineFixedErrors(oldM, newM), diskChangeErrors(&oldM.Spec, &newM.Spec)...)
			hardware := hardwareChangeErrors(&oldM.Spec, &newM.Spec)
			if len(hardware) == 0 || !inPlace {
				return append(errs, hardware...), nil
			}
			updating, err := isInPlaceUpdate(ctx, newM)
			if err != nil || updating {
				return errs, err
			}
			return append(errs, hardware...), nil
		},
	}
}

func machineTemplateValidator() *validator[*infrav1.VCDMachineTemplate] {
	return &validator[*infrav1.VCDMachineTemplate]{
		kind: "VCDMachineTemplate",
		spec: func(t *infrav1.VCDMachineTemplate) any { return t.Spec },
		rules: func(t *infrav1.VCDMachineTemplate) field.ErrorList {
			errs := machineSpecErrors(&t.Spec.Template.Spec, field.NewPath("spec", "template", "spec"))
			errs = append(errs, sharedInTemplate(t)...)
			errs = append(errs, switchesInTemplate(t, t.Spec.Template.ObjectMeta.Annotations)...)
			return append(errs, goneInTemplateErrors(t)...)
		},
		changes: func(ctx context.Context, _, t *infrav1.VCDMachineTemplate) (field.ErrorList, error) {
			return templateUnchanged(ctx, t, "create a new VCDMachineTemplate and set it in the infrastructureRef")
		},
	}
}

// machineSpecErrors validates the spec of a machine or of a machine template.
func machineSpecErrors(spec *infrav1.VCDMachineSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct{ name, value, kind string }{
		{"catalog", spec.Catalog, typeCatalog},
		{"template", spec.Template, typeTemplate},
		{"sizingPolicy", spec.SizingPolicy, typePolicy},
		{"placementPolicy", spec.PlacementPolicy, typePolicy},
		{"storageProfile", spec.StorageProfile, typeStorageProfile},
	} {
		errs = append(errs, objectErrors(f.value, f.kind, path.Child(f.name))...)
	}
	if spec.ProviderID != "" {
		if _, err := providerid.Parse(spec.ProviderID); err != nil {
			errs = append(errs, field.Invalid(path.Child("providerID"), spec.ProviderID,
				err.Error()+"; the controller sets it: remove the field"))
		}
	}
	if spec.Template != "" && spec.TemplateSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("template"),
			"cannot be set together with templateSelector: leave out one of them"))
	}
	if spec.Affinity != nil && spec.AntiAffinity != "" && spec.AntiAffinity != infrav1.AntiAffinityNone {
		errs = append(errs, field.Forbidden(path.Child("affinity"),
			"cannot be set together with antiAffinity: leave out one of them"))
	}
	errs = append(errs, computeErrors(spec, path)...)
	errs = append(errs, metadataErrors(spec.VMMetadata, path.Child("vmMetadata"))...)
	if size := spec.DiskSize; size != nil && size.Cmp(minDiskSize) < 0 {
		errs = append(errs, field.Invalid(path.Child("diskSize"), spec.DiskSize.String(),
			"must be at least 1Gi; a number without a unit is in bytes: use a value such as 40Gi"))
	}
	errs = append(errs, additionalDiskErrors(spec.AdditionalDisks, path.Child("additionalDisks"))...)
	if spec.VMNamingTemplate != "" {
		if err := vmname.Validate(spec.VMNamingTemplate); err != nil {
			errs = append(errs, field.Invalid(path.Child("vmNamingTemplate"), spec.VMNamingTemplate, err.Error()))
		}
	}
	return append(errs, networksErrors(spec.Networks, path.Child("networks"))...)
}

func additionalDiskErrors(disks []infrav1.DiskSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, disk := range disks {
		at := path.Index(i)
		if disk.Size.Cmp(minDiskSize) < 0 {
			errs = append(errs, field.Invalid(at.Child("size"), disk.Size.String(),
				"must be at least 1Gi; a number without a unit is in bytes: use a value such as 40Gi"))
		}
		errs = append(errs, objectErrors(disk.StorageProfile, typeStorageProfile, at.Child("storageProfile"))...)
	}
	return errs
}

// computeErrors rejects CPUs and memory in addition to a sizing policy.
func computeErrors(spec *infrav1.VCDMachineSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const together = "cannot be set together with sizingPolicy: remove one of them"
	if spec.CPUs > 0 && spec.SizingPolicy != "" {
		errs = append(errs, field.Forbidden(path.Child("cpus"), together))
	}
	if spec.Memory == nil {
		return errs
	}
	if spec.SizingPolicy != "" {
		errs = append(errs, field.Forbidden(path.Child("memory"), together))
	}
	return append(errs, memoryErrors(*spec.Memory, path.Child("memory"))...)
}

// Limits of VCD for the memory of a VM.
var (
	minMemory = resource.MustParse("512Mi")
	maxMemory = resource.MustParse("6Ti")
)

// memoryStep is the step between valid memory sizes, in bytes.
const memoryStep = 4 << 20

func memoryErrors(memory resource.Quantity, path *field.Path) field.ErrorList {
	if memory.Cmp(minMemory) < 0 || memory.Cmp(maxMemory) > 0 || memory.Value()%memoryStep != 0 {
		return invalid(path, memory.String(), "must be a multiple of 4Mi, from 512Mi to 6Ti, such as 8Gi")
	}
	return nil
}

const (
	// maxMetadataKey and maxMetadataValue are VCD's limits for metadata, in characters.
	maxMetadataKey, maxMetadataValue = 256, 1000
)

// metadataErrors rejects metadata that VCD would reject. A key is part of a URL.
func metadataErrors(metadata []infrav1.MetadataEntry, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range metadata {
		at := path.Index(i)
		key := entry.Key
		value := ptr.Deref(entry.Value, "")
		if key == "" || utf8.RuneCountInString(key) > maxMetadataKey || strings.ContainsAny(key, "/?#%") ||
			strings.TrimSpace(key) != key || strings.ContainsFunc(key, unicode.IsControl) {
			errs = append(errs, field.Invalid(at.Child("key"), key, fmt.Sprintf("must have 1 to %d characters, without / ? # %% and without leading or trailing spaces", maxMetadataKey)))
		}
		if utf8.RuneCountInString(value) > maxMetadataValue {
			errs = append(errs, field.TooLong(at.Child("value"), value, maxMetadataValue))
		}
		errs = append(errs, metadataValueErrors(entry.Type, value, at.Child("value"))...)
	}
	return errs
}

// wholeNumber matches a number in VCD's notation.
var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// metadataValueErrors rejects a value that does not match its type.
func metadataValueErrors(of infrav1.MetadataType, value string, path *field.Path) field.ErrorList {
	switch of {
	case infrav1.MetadataNumber:
		if !wholeNumber.MatchString(value) {
			return invalid(path, value, "must be a whole number, such as 4711")
		}
	case infrav1.MetadataBoolean:
		if value != "true" && value != "false" {
			return invalid(path, value, "must be true or false")
		}
	case infrav1.MetadataDateTime:
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return invalid(path, value, "must be a time in RFC 3339 format, such as 2026-12-31T23:59:59Z")
		}
	case infrav1.MetadataString:
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return invalid(path, value, "must not contain control characters")
	}
	return nil
}

// vmNameErrors validates the name of the machine, which is the default name of its VM and its host.
func vmNameErrors(m *infrav1.VCDMachine) field.ErrorList {
	if m.Spec.VMNamingTemplate != "" || len(m.Name) <= vmname.MaxLength {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), m.Name,
		fmt.Sprintf("is also the host name, which has at most %d characters: shorten the names of cluster and pool or set spec.vmNamingTemplate", vmname.MaxLength))}
}

// diskChangeErrors rejects a smaller disk for an existing VM. The disk of a VM can only grow.
func diskChangeErrors(oldSpec, newSpec *infrav1.VCDMachineSpec) field.ErrorList {
	if oldSpec.ProviderID == "" {
		return nil
	}
	before := quantity(oldSpec.DiskSize)
	after := quantity(newSpec.DiskSize)
	if after.Cmp(before) >= 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "diskSize"), fmt.Sprintf(
		"a disk cannot shrink: keep %s, or create a new VCDMachineTemplate with a smaller disk and roll it out",
		before.String()))}
}

func quantity(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}
