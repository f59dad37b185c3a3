// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"regexp"
	"strconv"
)

// A need is a set of requirements of a probe.
type need int

const (
	writes   need = 1 << iota // the probe creates or changes objects of the run
	machines                  // a VDC and a template
	onNetwork
	onGateway
	balancing // a load balancer on the gateway
)

// A probe determines whether one assumption is true at a site.
type probe func(ctx context.Context, b *bench) (outcome, error)

// An outcome is the result of a probe: a value with a description of how it was observed, or the reason for the lack of a
// value.
type outcome struct {
	value  string
	how    Text
	reason Text
}

// A Row is an assumption of the simulator, with its probe.
type Row struct {
	Name    string // name of the field in vcdsim's Assumptions
	Default string // default of the simulator
	Without Text   // reason why there is no probe; empty if there is one

	needs need
	probe probe
}

// Probed reports whether there is a probe.
func (r Row) Probed() bool { return r.probe != nil }

// Writes reports whether the probe creates or changes objects.
func (r Row) Writes() bool { return r.needs&writes != 0 }

// Table returns all assumptions, in the order of the simulator.
func Table() []Row {
	const vms = writes | machines
	const gateway = writes | onGateway
	return []Row{
		{Name: "VAppsArePrivate", Default: "true", Without: needsSecondUser},
		{Name: "DisksArePrivate", Default: "true", Without: needsSecondUser},
		{Name: "RolesAreExact", Default: "true", Without: needsBundles},
		{Name: "ExtraConfigTakesRight", Default: "true", needs: vms, probe: extraConfigTakesRight},
		{Name: "EntitiesTakeRights", Default: "true", needs: writes, probe: entitiesTakeRights},
		{Name: "EntitiesAdmitNull", Default: "true", needs: writes, probe: entitiesAdmitNull},
		{Name: "VMWaitsForVApp", Default: "true", needs: vms, probe: vmWaitsForVApp},
		{Name: "VAppWaitsForVM", Default: "true", needs: vms, probe: vAppWaitsForVM},
		{Name: "VMWriteLocksVApp", Default: "false", needs: vms, probe: vmWriteLocksVApp},
		{Name: "BusyTextTenant", Default: "true", needs: vms, probe: busyTextTenant},
		{Name: "RecomposeExtraItem", Default: "0.25", Without: needsMeasurements},
		{Name: "EmptyHardwareKeepsItems", Default: "true", needs: vms, probe: emptyHardwareKeepsItems},
		{Name: "RunningVMKeepsHardware", Default: "true", needs: vms, probe: runningVMKeepsHardware},
		{Name: "GuestWriteBusy", Default: "true", Without: needsGuest},
		{Name: "FailedTaskResidue", Default: "true", Without: needsFailure},
		{Name: "DeployedBlocksDelete", Default: "true", needs: vms, probe: deployedBlocksDelete},
		{Name: "VAppStaysDeployed", Default: "true", needs: vms, probe: vAppStaysDeployed},
		{Name: "AttachedDiskBlocksDelete", Default: "true", needs: vms, probe: attachedDiskBlocksDelete},
		{Name: "RunningBlocksNetworkRemoval", Default: "true", needs: vms | onNetwork, probe: runningBlocksNetworkRemoval},
		{Name: "UsedNetworkStays", Default: "false", needs: vms | onNetwork, probe: usedNetworkStays},
		{Name: "EmptyPageBeyondEnd", Default: "true", probe: emptyPageBeyondEnd},
		{Name: "QueryPageSizeIsCut", Default: "true", probe: queryPageSizeIsCut},
		{Name: "MaxVMsPerVApp", Default: "128", Without: needsManyVMs},
		{Name: "LinkedClonesKeepSize", Default: "true", needs: vms, probe: linkedClonesKeepSize},
		{Name: "IOPSIgnoredWithoutLimits", Default: "true", needs: vms, probe: iopsIgnoredWithoutLimits},
		{Name: "HrefFilterIsText", Default: "true", probe: hrefFilterIsText},
		{Name: "UsedAddressesAreFiltered", Default: "true", probe: usedAddressesAreFiltered},
		{Name: "PoolAddressKept", Default: "true", needs: vms | onNetwork, probe: poolAddressKept},
		{Name: "CancelUndoesCompose", Default: "true", needs: vms, probe: cancelUndoesCompose},
		{Name: "CellStopEndsSessions", Default: "true", Without: needsCellRestart},
		{Name: "CellStopAbortsTasks", Default: "true", Without: needsCellRestart},
		{Name: "GatewayWritesExclude", Default: "true", needs: gateway | balancing, probe: gatewayWritesExclude},
		{Name: "BusyGatewayConfiguresAll", Default: "false", needs: gateway | balancing, probe: busyGatewayConfiguresAll},
		{Name: "MaxNetworkName", Default: "128", needs: gateway, probe: maxNetworkName},
		{Name: "MaxNetworkDescription", Default: "1024", needs: gateway, probe: maxNetworkDescription},
		{Name: "EdgeRuleCreateSince", Default: "38.1", needs: gateway, probe: edgeRuleCreateSince},
		{Name: "EdgeRuleTopSince", Default: "39.0", needs: gateway, probe: edgeRuleTopSince},
		{Name: "NewerFieldsRefused", Default: "true", needs: gateway | balancing, probe: newerFieldsRefused},
		{Name: "SpaceAddressMustBeAllocated", Default: "true", needs: gateway, probe: spaceAddressMustBeAllocated},
		{Name: "AllocationsNeedType", Default: "true", probe: allocationsNeedType},
		{Name: "UplinkAddressMustBeOwn", Default: "true", needs: gateway, probe: uplinkAddressMustBeOwn},
		{Name: "PremiumFeaturesRefused", Default: "true", needs: gateway | balancing, probe: premiumFeaturesRefused},
		{Name: "IPv6NeedsServiceNetwork", Default: "true", needs: gateway | balancing, probe: ipv6NeedsServiceNetwork},
		{Name: "SharedVIPStays", Default: "false", needs: gateway | balancing, probe: sharedVIPStays},
		{Name: "GroupOwnsFirewallGroups", Default: "true", needs: gateway, probe: groupOwnsFirewallGroups},
		{Name: "TenantProfilesNeedOrg", Default: "true", needs: gateway, probe: tenantProfilesNeedOrg},
		{Name: "ManualUseBlocksRelease", Default: "false", Without: needsMark},
	}
}

var wholeNumber = regexp.MustCompile(`^[0-9]{1,4}$`)

// value converts a result for a report. It returns false unless the result has the type of the simulator's default.
func (r Row) value(text string) (any, bool) {
	switch {
	case text == "true" || text == "false":
		return text == "true", r.Default == "true" || r.Default == "false"
	case wholeNumber.MatchString(text):
		n, err := strconv.Atoi(text)
		return n, err == nil && wholeNumber.MatchString(r.Default)
	case versionText.MatchString(text):
		return text, versionText.MatchString(r.Default)
	}
	return nil, false
}
