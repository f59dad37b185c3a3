// SPDX-License-Identifier: Apache-2.0

package verifysite

import "slices"

// A Text is a sentence of the closed lists below. Only these get into a report.
type Text string

// Why an assumption has no result.
const (
	// Of assumptions without a probe.
	needsSecondUser   Text = "it needs a second user of the organization"
	needsBundles      Text = "it takes a provider's rights to define a role outside of the rights bundles of the organization"
	needsGuest        Text = "it needs a guest operating system that writes guestinfo"
	needsFailure      Text = "it needs an instantiation that fails in vCenter, which a tenant cannot cause"
	needsManyVMs      Text = "it would take more than 128 VMs"
	needsCellRestart  Text = "it needs the restart of a cell, which takes a provider"
	needsMeasurements Text = "durations depend on the load of the site: it would take many VMs to see what one adds"
	needsMark         Text = "the request that allocates an address takes no mark, so an interrupted run could leave one allocated"

	// Of probes that a run leaves out.
	isReadOnly   Text = "it creates objects, and the run is read-only"
	notSelected  Text = "it was not selected"
	lacksVDC     Text = "no VDC was found or named: set --vdc"
	lacksImage   Text = "no template was found or named: set --template"
	lacksNetwork Text = "no network with a static pool was found or named: set --network"
	lacksGateway Text = "no edge gateway was found or named: set --edge-gateway"
	lacksALB     Text = "the edge gateway has no load balancer, or its service engine groups are not shown"
	lacksRights  Text = "VCD refuses a request for lack of rights"
	interrupted  Text = "the run was interrupted"

	// Of the site, or of what it answered.
	hasRight        Text = "the user has the right that the probe must lack"
	unknownRights   Text = "the rights of the user cannot be read"
	noFastVDC       Text = "the VDC has no fast provisioning"
	noEntityType    Text = "the site shows no type of vmware:capvcdCluster with version 1.1.0 or later"
	noSpaces        Text = "the edge gateway does not use IP Spaces, or shows none"
	usesSpaces      Text = "the edge gateway uses IP Spaces"
	noGroup         Text = "the edge gateway is in no data center group"
	isPremium       Text = "the load balancer of the edge gateway has the feature set PREMIUM, or does not show it"
	noFreeAddress   Text = "the edge gateway has too few free addresses"
	noForeign       Text = "the edge gateway has all addresses of its subnets"
	noIPv6          Text = "the edge gateway has no free IPv6 address"
	hasIPv6Service  Text = "the load balancer has a service network of IPv6"
	noTransparent   Text = "the load balancer does not preserve addresses of clients, or no API version without that field is offered"
	noFloatingIP    Text = "the organization has no unused floating IP to compare with"
	noVersion       Text = "no API version that the site offers accepts the request"
	tooQuick        Text = "the task ended before the second request was answered"
	tooBusy         Text = "others kept the objects busy"
	noQuota         Text = "a quota or the capacity of the VDC is used up"
	limitReached    Text = "the limit on what a run creates is reached"
	controlRefused  Text = "the request to compare with was refused, too"
	answeredUnknown Text = "the answer is neither of the expected ones"
	failed          Text = "a request failed"
)

// How a result was seen.
const (
	howExtraConfigRefused Text = "without the right, a change of extra configuration was refused"
	howExtraConfigKept    Text = "without the right, a change of extra configuration was accepted"
	howEntityRefused      Text = "without the right of the type, creating an entity was refused"
	howEntityCreated      Text = "without the right of the type, an entity was created"
	howNullAccepted       Text = "an entity with a null field was resolved"
	howNullRefused        Text = "an entity with a null field was not resolved, and one without it was"
	howWriteBusy          Text = "the second write was refused with BUSY_ENTITY while the first one ran"
	howWriteAccepted      Text = "the second write was accepted while the first one ran"
	howBusyText           Text = "the sentence of a BUSY_ENTITY refusal was read"
	howHardwareSame       Text = "the hardware of the VM was the same after an empty section was sent"
	howHardwareChanged    Text = "the hardware of the VM changed after an empty section was sent"
	howDeleteRefused      Text = "deleting was refused"
	howDeleteAccepted     Text = "deleting was accepted"
	howDeployedRead       Text = "the vApp was read after its VM was started and undeployed"
	howRemovalRefused     Text = "removing the network from the vApp was refused"
	howRemovalAccepted    Text = "removing the network from the vApp was accepted"
	howPageRead           Text = "a page past the last was asked for"
	howPageSizeRead       Text = "129 records on a page were asked for"
	howGrowthRefused      Text = "growing the disk of a new VM was refused"
	howGrowthAccepted     Text = "growing the disk of a new VM was accepted"
	howHostFilterRead     Text = "a filter with the address of another host was compared with one of the site's own"
	howAddressRead        Text = "the address of a NIC was read before and after the VM was powered off"
	howCancelRead         Text = "a compose was cancelled, and its vApp looked for"
	howStatusRead         Text = "the status of another pool was read while one was created"
	howLengthsTried       Text = "lengths were tried on application port profiles"
	howVersionsTried      Text = "the offered API versions were tried, oldest first"
	howOldestAccepts      Text = "the oldest API version that is offered accepts it"
	howFieldRefused       Text = "a newer field was refused in an older API version only"
	howFieldAccepted      Text = "a newer field was accepted in an older API version"
	howForeignRefused     Text = "a disabled NAT rule with such an address was refused, and one with the site's own accepted"
	howForeignAccepted    Text = "a disabled NAT rule with such an address was accepted"
	howTypeNeeded         Text = "the list was refused without a type, and shown with one"
	howTypeNotNeeded      Text = "the list was shown without a type"
	howRefusedAlone       Text = "the request was refused, and the one to compare with accepted"
	howAccepted           Text = "the request was accepted"
)

// texts are all sentences that a report may have.
var texts = []Text{
	needsSecondUser, needsBundles, needsGuest, needsFailure, needsManyVMs, needsCellRestart, needsMeasurements, needsMark,
	isReadOnly, notSelected, lacksVDC, lacksImage, lacksNetwork, lacksGateway, lacksALB, lacksRights, interrupted,
	hasRight, unknownRights, noFastVDC, noEntityType, noSpaces, usesSpaces, noGroup, isPremium, noFreeAddress, noForeign,
	noIPv6, hasIPv6Service, noTransparent, noFloatingIP, noVersion, tooQuick, tooBusy, noQuota, limitReached,
	controlRefused, answeredUnknown, failed,
	howExtraConfigRefused, howExtraConfigKept, howEntityRefused, howEntityCreated, howNullAccepted, howNullRefused,
	howWriteBusy, howWriteAccepted, howBusyText, howHardwareSame, howHardwareChanged, howDeleteRefused, howDeleteAccepted,
	howDeployedRead, howRemovalRefused, howRemovalAccepted, howPageRead, howPageSizeRead, howGrowthRefused,
	howGrowthAccepted, howHostFilterRead, howAddressRead, howCancelRead, howStatusRead, howLengthsTried, howVersionsTried,
	howOldestAccepts, howFieldRefused, howFieldAccepted, howForeignRefused, howForeignAccepted, howTypeNeeded,
	howTypeNotNeeded, howRefusedAlone, howAccepted,
}

// Texts returns all sentences that a report may have.
func Texts() []Text { return slices.Clone(texts) }

// known returns the text if it is one of the lists, else one that says nothing of the site.
func (t Text) known() Text {
	if slices.Contains(texts, t) {
		return t
	}
	return failed
}
