// SPDX-License-Identifier: Apache-2.0

package verifysite

import "slices"

// A Text is a sentence of the closed lists below. A report contains only these sentences.
type Text string

// Reasons why an assumption has no result.
const (
	// Reasons why there is no probe.
	needsSecondUser   Text = "it requires a second user of the organization"
	needsBundles      Text = "it requires the rights of a provider to define a role outside the rights bundles of the organization"
	needsGuest        Text = "it requires a guest operating system that writes guestinfo"
	needsFailure      Text = "it requires an instantiation that fails in vCenter, which a tenant cannot cause"
	needsManyVMs      Text = "it would require more than 128 VMs"
	needsCellRestart  Text = "it requires a provider to restart a cell"
	needsMeasurements Text = "durations depend on the load of the site, so it would require many VMs to measure the effect of one"
	needsMark         Text = "the request that allocates an address has no field for a marker, so an interrupted run could leave an address allocated"

	// Reasons why a run skips a probe.
	isReadOnly   Text = "it creates objects, but the run is read-only"
	notSelected  Text = "it was not selected"
	lacksVDC     Text = "no VDC was found: set --vdc"
	lacksImage   Text = "no template was found: set --template"
	lacksNetwork Text = "no network with a static pool was found: set --network"
	lacksGateway Text = "no edge gateway was found: set --edge-gateway"
	lacksALB     Text = "the edge gateway has no load balancer, or its service engine groups are not visible"
	lacksRights  Text = "VCD rejects a request because of missing rights"
	interrupted  Text = "the run was interrupted"

	// Reasons that depend on the site or its responses.
	hasRight      Text = "the user has the right that must be missing for the probe"
	unknownRights Text = "the rights of the user cannot be read"
	noFastVDC     Text = "the VDC has no fast provisioning"
	// noUnlimitedIOPS is of a VM that has no disk on a storage profile without IOPS limiting.
	noUnlimitedIOPS Text = "the storage profile has IOPS limiting"
	noEntityType    Text = "no type vmware:capvcdCluster of version 1.1.0 or later is visible on the site"
	noSpaces        Text = "the edge gateway does not use IP Spaces, or none is visible"
	usesSpaces      Text = "the edge gateway uses IP Spaces"
	noGroup         Text = "the edge gateway is in no data center group"
	isPremium       Text = "the load balancer of the edge gateway has the feature set PREMIUM, or the feature set is not visible"
	noFreeAddress   Text = "the edge gateway has too few free addresses"
	noUsedAddress   Text = "no address of the network is in use, or the user may not view them"
	noForeign       Text = "the edge gateway owns all addresses of its subnets"
	noIPv6          Text = "the edge gateway has no free IPv6 address"
	hasIPv6Service  Text = "the load balancer has an IPv6 service network"
	noTransparent   Text = "the load balancer does not preserve client addresses, or the site supports no API version without that field"
	noFloatingIP    Text = "the organization has no unused floating IP for a comparison"
	noVersion       Text = "no API version of the site accepts the request"
	tooQuick        Text = "the task finished before the response to the second request"
	tooBusy         Text = "other clients kept the objects busy"
	noQuota         Text = "a quota or the capacity of the VDC is exhausted"
	limitReached    Text = "the limit of objects of a run is reached"
	controlRefused  Text = "the control request was also rejected"
	answeredUnknown Text = "the response is not one of the expected responses"
	failed          Text = "a request failed"
)

// Descriptions of how a result was observed.
const (
	howExtraConfigRefused Text = "without the right, a change of extra configuration was rejected"
	howExtraConfigKept    Text = "without the right, a change of extra configuration was accepted"
	howEntityRefused      Text = "without the right of the type, the creation of an entity was rejected"
	howEntityCreated      Text = "an entity was created without the right of the type"
	howNullAccepted       Text = "an entity with a null field was resolved"
	howNullRefused        Text = "an entity with a null field was not resolved, but one without it was"
	howWriteBusy          Text = "the second write was rejected with BUSY_ENTITY during the first one"
	howWriteAccepted      Text = "the second write was accepted during the first one"
	howBusyText           Text = "the message of a BUSY_ENTITY error was read"
	howHardwareSame       Text = "an empty section did not change the hardware of the VM"
	howHardwareChanged    Text = "an empty section changed the hardware of the VM"
	howResizeRefused      Text = "a change of the memory of a running VM that its hot-add settings do not allow was rejected"
	howResizeAccepted     Text = "a change of the memory of a running VM that its hot-add settings do not allow was accepted"
	howDeleteRefused      Text = "the deletion was rejected"
	howDeleteAccepted     Text = "the deletion was accepted"
	howDeployedRead       Text = "the vApp was read after its VM was started and undeployed"
	howRemovalRefused     Text = "the removal of the network from the vApp was rejected"
	howRemovalAccepted    Text = "the removal of the network from the vApp was accepted"
	howPageRead           Text = "a page after the last one was requested"
	howPageSizeRead       Text = "129 records per page were requested"
	howGrowthRefused      Text = "the expansion of the disk of a new VM was rejected"
	howGrowthAccepted     Text = "the expansion of the disk of a new VM was accepted"
	howIOPSIgnored        Text = "a number of IOPS was accepted for a disk on a storage profile without IOPS limiting"
	howIOPSRefused        Text = "a number of IOPS was rejected for a disk on a storage profile without IOPS limiting"
	howHostFilterRead     Text = "a filter with the address of another host was compared with one of the site"
	howAddressFiltered    Text = "a filter by an unused address returned no used addresses of the network"
	howAddressNotFiltered Text = "a filter by an unused address was ignored"
	howAddressRefused     Text = "the list of used addresses was returned, but rejected with a filter by address"
	howAddressRead        Text = "the address of a NIC was read before and after the VM was powered off"
	howCancelRead         Text = "a compose task was cancelled, and its vApp searched for"
	howStatusRead         Text = "the status of another pool was read while one was created"
	howLengthsTried       Text = "name lengths were tested with application port profiles"
	howVersionsTried      Text = "the supported API versions were tested, oldest first"
	howOldestAccepts      Text = "the oldest supported API version accepts it"
	howFieldRefused       Text = "a newer field was rejected only in an older API version"
	howFieldAccepted      Text = "a newer field was accepted in an older API version"
	howForeignRefused     Text = "a disabled NAT rule with such an address was rejected, but one with an address of the site was accepted"
	howForeignAccepted    Text = "a disabled NAT rule with such an address was accepted"
	howTypeNeeded         Text = "the list was rejected without a type, but returned with one"
	howTypeNotNeeded      Text = "the list was returned without a type"
	howRefusedAlone       Text = "the request was rejected, but the control request was accepted"
	howAccepted           Text = "the request was accepted"
)

// texts are all sentences that a report may contain.
var texts = []Text{
	needsSecondUser, needsBundles, needsGuest, needsFailure, needsManyVMs, needsCellRestart, needsMeasurements, needsMark,
	isReadOnly, notSelected, lacksVDC, lacksImage, lacksNetwork, lacksGateway, lacksALB, lacksRights, interrupted,
	hasRight, unknownRights, noFastVDC, noUnlimitedIOPS, noEntityType, noSpaces, usesSpaces, noGroup, isPremium, noFreeAddress,
	noUsedAddress, noForeign,
	noIPv6, hasIPv6Service, noTransparent, noFloatingIP, noVersion, tooQuick, tooBusy, noQuota, limitReached,
	controlRefused, answeredUnknown, failed,
	howExtraConfigRefused, howExtraConfigKept, howEntityRefused, howEntityCreated, howNullAccepted, howNullRefused,
	howWriteBusy, howWriteAccepted, howBusyText, howHardwareSame, howHardwareChanged, howResizeRefused, howResizeAccepted,
	howDeleteRefused, howDeleteAccepted,
	howDeployedRead, howRemovalRefused, howRemovalAccepted, howPageRead, howPageSizeRead, howGrowthRefused,
	howGrowthAccepted, howIOPSIgnored, howIOPSRefused,
	howHostFilterRead, howAddressFiltered, howAddressNotFiltered, howAddressRefused, howAddressRead,
	howCancelRead, howStatusRead, howLengthsTried, howVersionsTried,
	howOldestAccepts, howFieldRefused, howFieldAccepted, howForeignRefused, howForeignAccepted, howTypeNeeded,
	howTypeNotNeeded, howRefusedAlone, howAccepted,
}

// Texts returns all sentences that a report may contain.
func Texts() []Text { return slices.Clone(texts) }

// known returns the text if it is in the lists, otherwise a text that reveals nothing about the site.
func (t Text) known() Text {
	if slices.Contains(texts, t) {
		return t
	}
	return failed
}
