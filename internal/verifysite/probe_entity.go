// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// The type of the created entities, which clusters also use.
const (
	entityVendor = "vmware"
	entityNSS    = "capvcdCluster"
)

// entityType returns the URN of a supported version of the entity type, or the empty string if none is visible.
func (b *bench) entityType(ctx context.Context) (string, error) {
	versions, err := b.session.Entities.TypeVersions(ctx, entityVendor, entityNSS)
	if ignoreHidden(err) != nil {
		return "", err
	}
	for _, v := range versions {
		if rde.Supports(v.ID) {
			return v.ID, nil
		}
	}
	return "", nil
}

// entity creates an entity of the run and returns its URN.
func (b *bench) entity(ctx context.Context, ofType string, content json.RawMessage) (string, error) {
	if err := b.created.add(kindEntity); err != nil {
		return "", err
	}
	name := b.nextName("entity")
	id, err := b.session.Entities.Create(ctx, vcd.EntitySpec{
		Type:       ofType,
		Name:       name,
		ExternalID: markOf(b.run),
		Content:    content,
	})
	if err != nil || id != "" {
		return id, err
	}
	found, err := b.session.Entities.Find(ctx, vcd.EntityKind{Vendor: entityVendor, NSS: entityNSS}, name, markOf(b.run))
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, fmt.Errorf("entity %s is not listed", name))
	}
	return found[0].ID, nil
}

// entitiesTakeRights creates an entity as a user without the right for its type.
func entitiesTakeRights(ctx context.Context, b *bench) (outcome, error) {
	const prefix = entityVendor + ":" + entityNSS + ": "
	reason, err := b.mustLack(ctx, prefix+"Full Access", prefix+"Administrator Full access",
		prefix+"Administrator Full Access")
	if err != nil || reason != "" {
		return unknown(reason), err
	}
	ofType, err := b.entityType(ctx)
	if err != nil {
		return outcome{}, err
	}
	if ofType == "" {
		return unknown(noEntityType), nil
	}
	_, err = b.entity(ctx, ofType, json.RawMessage(`{}`))
	switch {
	case errors.Is(err, vcd.ErrForbidden):
		return isTrue(howEntityRefused), nil
	case err != nil:
		return outcome{}, err
	}
	return isFalse(howEntityCreated), b.sweep(ctx, kindEntity)
}

// entitiesAdmitNull resolves two entities: one with a null field where the schema of its type requires an object, and
// one without the field.
func entitiesAdmitNull(ctx context.Context, b *bench) (outcome, error) {
	ofType, err := b.entityType(ctx)
	if err != nil {
		return outcome{}, err
	}
	if ofType == "" {
		return unknown(noEntityType), nil
	}
	resolves := func(content string) (bool, error) {
		whole, err := rde.Project(ofType, json.RawMessage(content), rde.Cluster{UID: b.run, Name: nameOf(b.run, "entity")})
		if err != nil {
			return false, err
		}
		id, err := b.entity(ctx, ofType, whole)
		if err != nil {
			return false, err
		}
		problem, err := b.session.Entities.Resolve(ctx, id)
		return problem == "", err
	}
	with, err := resolves(`{"status":{"capvcd":{"upgrade":{"previous":null}}}}`)
	if err != nil {
		return outcome{}, err
	}
	without, err := resolves(`{}`)
	if err != nil {
		return outcome{}, err
	}
	if err := b.sweep(ctx, kindEntity); err != nil {
		return outcome{}, err
	}
	if !without {
		return unknown(controlRefused), nil
	}
	return is(with, howNullAccepted, howNullRefused), nil
}
