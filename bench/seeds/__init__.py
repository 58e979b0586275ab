"""The published figures of five studies: beside the models of the product, and measured again."""
