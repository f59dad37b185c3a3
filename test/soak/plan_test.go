// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// day is the plan of the acceptance run.
func day(seed uint64) scope {
	return scope{seed: seed, clusters: 20, ccms: 4, duration: 24 * time.Hour, sites: sites}
}

func TestASeedGivesTheSamePlan(t *testing.T) {
	g := NewWithT(t)

	g.Expect(plan(day(7))).To(Equal(plan(day(7))))
	g.Expect(plan(day(7))).NotTo(Equal(plan(day(8))))
}

func TestAnHourOnTenClustersHasAllActionsAndLayouts(t *testing.T) {
	g := NewWithT(t)
	seen := map[action]int{}
	used := map[int]bool{}

	for _, e := range plan(scope{seed: 1, clusters: 10, ccms: 10, duration: time.Hour, sites: sites}) {
		seen[e.Action]++
		if e.Action == actCreate {
			used[e.Layout] = true
		}
	}

	for _, a := range []action{
		actCreate, actScale, actPlane, actRoll, actRollPlane, actUpgrade, actRemediate, actService, actNoService, actDelete,
		actFault, actCellDown, actKill, actKillCCM, actRotate, actUpgradeVCD,
	} {
		g.Expect(seen[a]).To(BeNumerically(">", 0), "%s", a)
	}
	g.Expect(used).To(HaveLen(len(layouts())))
}

func TestADayHasAllFaultsAndIdentities(t *testing.T) {
	g := NewWithT(t)
	faults := map[int]bool{}
	identities := map[identityKind]bool{}

	for _, e := range plan(day(1)) {
		switch e.Action { //nolint:exhaustive // the others have neither
		case actFault:
			if e.Cluster == cloudStackName {
				continue
			}
			faults[e.Number%len(troubles())] = true
		case actCreate:
			identities[e.Identity] = true
		}
	}

	g.Expect(faults).To(HaveLen(len(troubles())))
	g.Expect(identities).To(HaveLen(len(identityKinds())))
}

func TestEventsOfAClusterAreBetweenItsCreationAndItsDeletion(t *testing.T) {
	g := NewWithT(t)
	alive := map[int]string{}
	upgraded := map[string]bool{}

	var before time.Duration
	for _, e := range plan(day(3)) {
		g.Expect(e.At).To(And(BeNumerically(">=", before), BeNumerically("<=", 24*time.Hour)))
		before = e.At
		if e.Cluster == "" || e.Cluster == cloudStackName {
			continue
		}
		if e.Action == actCreate {
			g.Expect(alive).NotTo(HaveKey(e.Slot), "%s", e)
			alive[e.Slot] = e.Cluster
			upgraded[e.Cluster] = !e.Older
		}
		g.Expect(alive[e.Slot]).To(Equal(e.Cluster), "%s", e)
		if e.Action == actUpgrade {
			g.Expect(upgraded[e.Cluster]).To(BeFalse(), "%s runs the newest version", e.Cluster)
			upgraded[e.Cluster] = true
		}
		if e.Action == actDelete {
			delete(alive, e.Slot)
		}
	}
}

func TestDisturbancesEndWithTheRun(t *testing.T) {
	g := NewWithT(t)
	for _, e := range plan(day(5)) {
		g.Expect(e.At+e.For).To(BeNumerically("<=", 24*time.Hour), "%s", e)
	}
}

func TestOnlyClustersWithACloudControllerManagerHaveServices(t *testing.T) {
	g := NewWithT(t)
	for _, e := range plan(day(9)) {
		if e.Cluster != cloudStackName && (e.Action == actService || e.Action == actNoService) {
			g.Expect(e.Slot).To(BeNumerically("<", 4), "%s", e)
		}
	}
}
