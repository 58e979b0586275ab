//! Appending a product whose bytes are in a complete file.

use crate::{
    Appended, Clock, FeedLog, LogError, NewProduct, SpoolFile, api::ReadFrom, feed_log::draft::Source,
    feed_log::spool::Spool, feed_log::writer::Numbers,
};

impl FeedLog {
    pub(crate) fn append_spool(
        &self,
        mut product: NewProduct,
        mut file: SpoolFile<'_>,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        let options = self.options();
        let unreadable = |source| LogError::Source { id: product.id.clone(), source };
        let size = file.file.metadata().map_err(unreadable)?.len();
        // Another process could still change a file of its own, so that is copied and hashed in one pass.
        if !file.is_own || !options.has_body(size, true) {
            return self.append_stream(product, &mut ReadFrom { file: file.file, offset: 0 }, clock);
        }
        // Hashed before the other products of the feed have to wait.
        let hashed = std::mem::take(&mut file.hashed);
        let mut hashed = hashed.continued_for(options.duplicate_rule, product.ldm.is_some());
        let offset = hashed.hashed_bytes();
        hashed.update_from(&mut ReadFrom { file: file.file, offset }).map_err(unreadable)?;
        let contents = hashed.finish();
        contents.check(&product)?;
        product.expected_size = Some(contents.size);
        let source = Source::Spool(Spool { file, contents });
        self.append_as(&mut self.writer(), product, source, clock, Numbers::Own)
    }
}
