// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// clusterRecords are the annotations by which a cluster finds what it has in VCD, with what each lists. The controllers
// write them. They are annotations because those survive a move to another management cluster, where the object is
// created with them.
var clusterRecords = []struct {
	key   string
	valid *regexp.Regexp
}{
	{infrav1.OVDCIDAnnotation, urns("vdc", "")},
	{infrav1.OVDCNetworkIDAnnotation, urns("network", "")},
	{infrav1.AffinityRulesAnnotation, urns("vdc", "*")},
	{infrav1.EndpointGatewayAnnotation, urns("gateway", "")},
	{infrav1.RDEIDAnnotation, entityURN},
	{infrav1.VAppsAnnotation, urns("vapp", "*")},
	{infrav1.VAppGoneAnnotation, urns("vapp", "*")},
}

// zoneRecord is what a cluster has in a zone.
var zoneRecord = regexp.MustCompile(`^urn:vcloud:vdc:[0-9a-fA-F-]{36} [0-9]{1,3}( urn:vcloud:vapp:[0-9a-fA-F-]{36})*$`)

// urns matches a URN of a type, and further ones if more is "*".
func urns(kind, more string) *regexp.Regexp {
	one := `urn:vcloud:` + kind + `:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`
	if more != "" {
		more = `(, *` + one + `)` + more
	}
	return regexp.MustCompile(`^` + one + more + `$`)
}

// clusterRecordErrors returns what is wrong with the annotations by which a cluster finds what it has in VCD.
func clusterRecordErrors(c *infrav1.VCDCluster) field.ErrorList {
	var errs field.ErrorList
	for _, record := range clusterRecords {
		if value, ok := c.Annotations[record.key]; ok && !record.valid.MatchString(value) {
			errs = append(errs, field.Invalid(annotation(record.key), value,
				"must be URNs of VCD: the controller writes it, leave it out"))
		}
	}
	for key, value := range c.Annotations {
		if strings.HasPrefix(key, infrav1.ZoneVAppsAnnotationPrefix) && !zoneRecord.MatchString(value) {
			errs = append(errs, field.Invalid(annotation(key), value,
				"must be the URN of a VDC, a number, and URNs of vApps: the controller writes it, leave it out"))
		}
	}
	return errs
}

// clusterRecordChangeErrors refuses to give a cluster another place, and to declare vApps deleted that may be there:
// disks are deleted after that.
func clusterRecordChangeErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	errs := append(recordedIDChangeErrors(before, c), zoneRecordChangeErrors(before, c)...)
	errs = append(errs, vAppGoneChangeErrors(before, c)...)
	return append(errs, without(clusterRecordErrors(c), clusterRecordErrors(before))...)
}

// recordedIDChangeErrors refuses another VDC, network or gateway of the endpoint. Without an id, what is recorded is of
// the cluster that this one was copied from.
func recordedIDChangeErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	if before.Spec.InfraID == "" {
		return nil
	}
	var errs field.ErrorList
	for _, key := range []string{
		infrav1.OVDCIDAnnotation, infrav1.OVDCNetworkIDAnnotation, infrav1.EndpointGatewayAnnotation,
	} {
		was, had := before.Annotations[key]
		if is, has := c.Annotations[key]; had && has && was != is {
			errs = append(errs, field.Forbidden(annotation(key),
				"is immutable: remove it to have the name in the spec looked up again"))
		}
	}
	return errs
}

// zoneRecordChangeErrors refuses another VDC for a zone.
func zoneRecordChangeErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	var errs field.ErrorList
	for key, value := range before.Annotations {
		if !strings.HasPrefix(key, infrav1.ZoneVAppsAnnotationPrefix) {
			continue
		}
		vdc, _, _ := strings.Cut(value, " ")
		if now, has := c.Annotations[key]; has && !strings.HasPrefix(now, vdc+" ") {
			errs = append(errs, field.Forbidden(annotation(key), "has the VDC of the zone, which is immutable"))
		}
	}
	return errs
}

// vAppGoneChangeErrors refuses vApps as deleted that the cluster did not have, or while it is not deleted.
func vAppGoneChangeErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	was := listed(before, infrav1.VAppGoneAnnotation)
	known := listed(before, infrav1.VAppsAnnotation)
	for key := range before.Annotations {
		if strings.HasPrefix(key, infrav1.ZoneVAppsAnnotationPrefix) {
			known = append(known, listed(before, key)...)
		}
	}
	refused := func(id string) bool {
		return !slices.Contains(was, id) && (c.DeletionTimestamp.IsZero() || !slices.Contains(known, id))
	}
	if !slices.ContainsFunc(listed(c, infrav1.VAppGoneAnnotation), refused) {
		return nil
	}
	return field.ErrorList{field.Forbidden(annotation(infrav1.VAppGoneAnnotation),
		"lists only vApps that the controller deleted with the cluster: to leave a vApp in VCD, use "+
			infrav1.KeepVAppAnnotation)}
}

// clusterRecordAdditionErrors refuses to users what the controllers add: another place for a cluster whose place was
// removed before, and vApps that are deleted.
func clusterRecordAdditionErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	var errs field.ErrorList
	for _, key := range []string{infrav1.OVDCIDAnnotation, infrav1.OVDCNetworkIDAnnotation} {
		_, had := before.Annotations[key]
		if _, has := c.Annotations[key]; has && !had {
			errs = append(errs, field.Forbidden(annotation(key),
				"is written by the controller: leave it out, and correct the name in the spec"))
		}
	}
	was := listed(before, infrav1.VAppGoneAnnotation)
	added := func(id string) bool { return !slices.Contains(was, id) }
	if slices.ContainsFunc(listed(c, infrav1.VAppGoneAnnotation), added) {
		errs = append(errs, field.Forbidden(annotation(infrav1.VAppGoneAnnotation),
			"is written by the controller: to leave a vApp in VCD, use "+infrav1.KeepVAppAnnotation))
	}
	return errs
}

// clusterRecordsInTemplateErrors refuses to give all clusters of a template what is one's.
func clusterRecordsInTemplateErrors(t *infrav1.VCDClusterTemplate) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec", "template", "metadata", "annotations")
	for _, record := range clusterRecords {
		if _, ok := t.Spec.Template.ObjectMeta.Annotations[record.key]; ok {
			errs = append(errs, field.Forbidden(at.Key(record.key),
				"is of one cluster: the controller writes it, leave it out"))
		}
	}
	for key := range t.Spec.Template.ObjectMeta.Annotations {
		if strings.HasPrefix(key, infrav1.ZoneVAppsAnnotationPrefix) {
			errs = append(errs, field.Forbidden(at.Key(key),
				"is of one cluster: the controller writes it, leave it out"))
		}
	}
	if t.Spec.Template.Spec.RDE.ID != "" {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "template", "spec", "rde", "id"),
			"is of one cluster: leave it out to have one made for each"))
	}
	return errs
}

func annotation(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

func listed(c *infrav1.VCDCluster, key string) []string {
	return strings.FieldsFunc(c.Annotations[key], func(r rune) bool { return r == ',' || r == ' ' })
}
